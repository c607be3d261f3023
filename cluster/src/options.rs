//! The form of the engine's options in messages.

use fuc_engine::{
    Ask, Backup, CopyOp, Dereference, Dest, DestRules, Execution, LinkKind, ModePolicy, Preserve,
    Reflink, RemoveOp, Replace, Sparse, Xattrs,
};

use crate::wire::{Wire, wire_enum, wire_open_struct};

wire_open_struct!(RemoveOp<'static> {
    recursive,
    ignore_missing,
    preserve_root,
    preserve_mount_points,
    empty_directories,
    one_file_system,
    ask,
    threads,
    execution,
});

wire_open_struct!(CopyOp<'static> {
    recursive,
    dereference,
    one_file_system,
    copy_contents,
    as_links,
    reflink,
    sparse,
    force,
    rules,
    parents,
    preserve,
    context,
    closes_empty_files,
    attributes_only,
    durable,
    verify,
    threads,
    execution,
});

wire_open_struct!(DestRules {
    replace,
    ask,
    remove_first,
    backup,
    backup_suffix,
    follow_links_to_directories,
    create_through_links,
});

wire_open_struct!(Preserve {
    mode,
    ownership,
    timestamps,
    links,
    xattrs,
    context,
});

wire_enum!(Ask {
    Never,
    IfWriteProtected,
    Always,
});
wire_enum!(Execution { Real, DryRun });
wire_enum!(Dereference {
    Never,
    Operands,
    Always,
});
wire_enum!(LinkKind { Hard, Symbolic });
wire_enum!(Reflink {
    Auto,
    Always,
    Never,
});
wire_enum!(Sparse {
    Auto,
    Always,
    Never,
});
wire_enum!(Replace {
    All,
    Older,
    Changed,
    None,
    NoneAndFail,
});
wire_enum!(Backup {
    Simple,
    Numbered,
    NumberedIfAny,
});
wire_enum!(ModePolicy {
    Default,
    Preserve,
    Discard,
});
wire_enum!(Xattrs {
    Leave,
    Try,
    Warn,
    Require,
});

impl Wire for Dest {
    fn put(&self, bytes: &mut Vec<u8>) {
        let (is_exact, path) = match self {
            Self::Into(path) => (false, path),
            Self::Exactly(path) => (true, path),
        };
        is_exact.put(bytes);
        path.put(bytes);
    }

    fn take(bytes: &mut &[u8]) -> Option<Self> {
        Some(match bool::take(bytes)? {
            false => Self::Into(Wire::take(bytes)?),
            true => Self::Exactly(Wire::take(bytes)?),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::{assert_complete, assert_travels};

    #[test]
    fn all_options_travel() {
        assert_complete::<RemoveOp<'static>>();
        assert_complete::<CopyOp<'static>>();
        assert_complete::<DestRules>();
        assert_complete::<Preserve>();
    }

    #[test]
    fn options_are_read_as_they_were_written() {
        let mut rules = DestRules::default();
        rules.replace = Replace::NoneAndFail;
        rules.remove_first = true;
        rules.backup = Some(Backup::NumberedIfAny);
        rules.backup_suffix = ".old".into();
        let mut copy = CopyOp::new();
        copy.dereference = Dereference::Always;
        copy.as_links = Some(LinkKind::Symbolic);
        copy.rules = rules;
        copy.preserve = Preserve::all();
        copy.context = Some(c"a:b:c".into());
        copy.threads = std::num::NonZeroUsize::new(3);
        assert_travels(&copy);
        assert_travels(&CopyOp::new());
        let mut removal = RemoveOp::new();
        removal.preserve_mount_points = true;
        removal.ask = Ask::Always;
        assert_travels(&removal);
        assert_travels(&Dest::Into("a".into()));
        assert_travels(&Dest::Exactly("b".into()));
    }
}
