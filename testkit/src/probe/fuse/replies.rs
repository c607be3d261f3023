//! The replies of the [`Server`], each of which waits as long as the server is said to take.

use std::{ffi::OsStr, io, path::Path};

use fuser::{FileAttr, Generation, INodeNo, ReplyAttr, ReplyEmpty, ReplyEntry, Request};

use super::server::Server;

/// Replies late with an error, or with what `$ok` makes of the value.
macro_rules! answer {
    ($server:expr, $reply:ident, $result:expr, $value:pat => $ok:expr) => {{
        let result = $result;
        $server.wait();
        match result {
            Ok($value) => $ok,
            Err(e) => $reply.error(io::Error::from(e).into()),
        }
    }};
}

pub(super) use answer;

impl Server {
    pub(super) fn done(&self, reply: ReplyEmpty, result: io::Result<()>) {
        answer!(self, reply, result, () => reply.ok());
    }

    pub(super) fn entry(&self, reply: ReplyEntry, found: io::Result<FileAttr>) {
        answer!(self, reply, found, attributes => reply.entry(&self.habits.client_caches, &attributes, Generation(0)));
    }

    pub(super) fn attr(&self, reply: ReplyAttr, found: io::Result<FileAttr>) {
        answer!(self, reply, found, attributes => reply.attr(&self.habits.client_caches, &attributes));
    }

    /// Makes an entry, and replies with it.
    pub(super) fn make(
        &self,
        request: &Request,
        parent: INodeNo,
        name: &OsStr,
        mode: Option<u32>,
        reply: ReplyEntry,
        make: impl FnOnce(&Path) -> io::Result<()>,
    ) {
        let made = self.new_child(parent, name).and_then(|path| {
            make(&path)?;
            Self::finish(request, &path, mode)?;
            self.node_attributes(&path)
        });
        self.entry(reply, made);
    }
}
