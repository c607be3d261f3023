//! The settings that removals and copies have in common, besides their options.

use std::fmt;
use std::os::fd::BorrowedFd;
use std::sync::Arc;

use crate::cancel::Cancel;
use crate::distribute::Sharing;
use crate::filter::Filter;
use crate::sys::CWD;
use crate::throttle::Throttle;

/// The surroundings of a run.
#[derive(Clone)]
pub(crate) struct Setup<'a> {
    /// The directory in which operands that are relative paths are looked up.
    pub(crate) dir: BorrowedFd<'a>,
    pub(crate) cancel: Option<Cancel>,
    pub(crate) filter: Option<Arc<dyn Filter>>,
    pub(crate) throttle: Option<&'a dyn Throttle>,
    /// The other engines that work on the operands, if there are any.
    pub(crate) sharing: Option<Sharing<'a>>,
}

impl Default for Setup<'_> {
    fn default() -> Self {
        Self {
            dir: CWD,
            cancel: None,
            filter: None,
            throttle: None,
            sharing: None,
        }
    }
}

impl fmt::Debug for Setup<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Setup").finish_non_exhaustive()
    }
}

/// Writes the methods of an operation that make it and change its `setup`.
macro_rules! setup_methods {
    ($op:ident) => {
        impl<'a> $op<'a> {
            /// Creates an operation with the default options.
            #[must_use]
            pub fn new() -> Self {
                Self::default()
            }

            /// Changes options: `change` sets them.
            #[must_use]
            pub fn with(mut self, change: impl FnOnce(&mut Self)) -> Self {
                change(&mut self);
                self
            }

            /// Looks up operands that are relative paths in the open directory `dir`, not in the working directory.
            /// The path `.` is `dir` itself.
            ///
            /// The directory may be renamed or replaced by another at any time: only the open one matters. Errors and
            /// events have the paths as given; see [`Error::below`](crate::Error::below).
            #[must_use]
            pub fn in_dir(mut self, dir: &'a impl ::std::os::fd::AsFd) -> Self {
                self.setup.dir = dir.as_fd();
                self
            }

            /// Lets `cancel` stop the runs of this operation. It replaces an earlier token.
            #[must_use]
            pub fn cancelled_by(mut self, cancel: $crate::Cancel) -> Self {
                self.setup.cancel = Some(cancel);
                self
            }

            /// Lets `filter` choose the entries that are processed; [`Verdict`](crate::Verdict) says how. Clones of
            /// this operation share the filter.
            #[must_use]
            pub fn filtered_by(mut self, filter: impl $crate::Filter + 'static) -> Self {
                self.setup.filter = Some(::std::sync::Arc::new(filter));
                self
            }

            /// Limits the speed of the runs.
            #[must_use]
            pub fn throttled_by(mut self, throttle: &'a dyn $crate::Throttle) -> Self {
                self.setup.throttle = Some(throttle);
                self
            }

            /// Lets a run share the work on the operands with other engines by `exchange`, as
            /// [`distribute`](crate::distribute) describes. All have the same operands and options, and one leads.
            ///
            /// A relative path must name the same file for each engine. If it does not, an engine that assists gives the
            /// work back undone.
            ///
            /// # Panics
            /// A run panics if the system refuses the thread that talks to the other engines.
            #[cfg(feature = "distribute")]
            #[must_use]
            pub fn shared_by(
                mut self,
                exchange: &'a dyn $crate::distribute::Exchange,
                role: $crate::distribute::Role,
            ) -> Self {
                self.setup.sharing = Some($crate::distribute::Sharing { exchange, role });
                self
            }
        }
    };
}

pub(crate) use setup_methods;
