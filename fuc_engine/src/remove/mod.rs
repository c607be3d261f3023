//! Removing trees.
//!
//! A file costs one `unlinkat`. A directory costs what it takes to list it and one
//! `unlinkat`, by the worker that finishes the last entry under it.
//!
//! ```text
//!              run                   implements the walk's visitor; removes listed files
//!       ┌───────┬─┴──────────┐
//!    operand  waiting    directory     remove, and return what became of a name
//!       └───────┴─┬──────────┤
//!              asking      guards      look and ask the user; protect directories
//!                 │
//!              prompt                  pure decisions
//! ```
//!
//! | file | holds |
//! |---|---|
//! | `op` | the public entry points |
//! | `options` | [`RemoveOp`], the options of a caller: data only |
//! | `run` | one run: the walk's visitor, which knows all the others |
//! | `operand` | removing an operand, or handing it over to be entered |
//! | `directory` | entering a directory, and removing it when it is empty |
//! | `waiting` | names that are tried again at the end, because the reason to fail may pass |
//! | `guards` | directories that the options protect: `/`, mount points, other filesystems |
//! | `asking` | looking at what a question depends on, asking the user and applying the answer |
//! | `prompt` | whether the user is asked, and what: pure decisions |
//! | `context` | options, operands and open directories; paths, errors and events |
//! | `unlock` | changing the modes of directories that prevent a removal |
//! | `remover` | removes names, or checks in a dry run that they could be removed |
//! | `count` | the look-ahead: counts what is below operands, beside a removal or a copy |
//! | `node` | the state of a directory in flight; a name to remove, and the directory that it is in |

mod asking;
mod context;
mod count;
mod directory;
mod guards;
mod node;
mod op;
mod operand;
mod options;
mod prompt;
mod remover;
mod run;
mod unlock;
mod waiting;

pub(crate) use count::{Content, Survey};
pub use op::{remove_contents, remove_tree};
pub use options::{Ask, RemoveOp};
