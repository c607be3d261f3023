//! Trees with a billion entries that need little memory: all directories of one kind have the same content.

/// A tree. The operand is the only directory of kind 0.
pub(super) struct Shape {
    kinds: Vec<Kind>,
}

/// A kind of directories.
pub(super) struct Kind {
    pub(super) files: u64,
    /// Other kinds, and how many directories of each are in one of this kind. They come later in the list of kinds.
    pub(super) children: Vec<(usize, u64)>,
    /// The entries of one such directory, with itself and everything below.
    pub(super) entries: u64,
}

impl Shape {
    /// Makes a tree of kinds, each of which consists of a number of files and of directories of later kinds.
    fn new(contents: Vec<(u64, Vec<(usize, u64)>)>) -> Self {
        let count = contents.len();
        let mut last_first: Vec<Kind> = Vec::with_capacity(count);
        for (files, children) in contents.into_iter().rev() {
            let kind = |kind: usize| &last_first[count - 1 - kind];
            let below = children.iter();
            let entries = below.map(|&(it, count)| count * kind(it).entries);
            last_first.push(Kind {
                files,
                entries: 1 + files + entries.sum::<u64>(),
                children,
            });
        }
        last_first.reverse();
        Self { kinds: last_first }
    }

    /// Makes a tree with as many levels of subdirectories as `subdirectories` has numbers. Each directory has `files`.
    pub(super) fn levels(subdirectories: &[u64], files: u64) -> Self {
        let below = subdirectories.iter().zip(1..);
        let mut contents: Vec<_> = below
            .map(|(&count, kind)| (files, vec![(kind, count)]))
            .collect();
        contents.push((files, Vec::new()));
        Self::new(contents)
    }

    /// Makes a chain with other directories beside each one.
    pub(super) fn comb(depth: usize, beside: u64, files: u64) -> Self {
        let tooth = depth;
        let below = (1..depth).map(|next| (files, vec![(tooth, beside), (next, 1)]));
        let mut contents: Vec<_> = below.collect();
        contents.push((files, vec![(tooth, beside)]));
        contents.push((files, Vec::new()));
        Self::new(contents)
    }

    /// Makes a tree in which sizes differ by up to nine orders of magnitude, also those of directories in the same one.
    pub(super) fn uneven(least_entries: u64) -> Self {
        let mut state = 1_u64;
        let mut below = |end: u64| {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            (state >> 33) % end
        };
        // Here the kinds that are contained come first.
        let mut contents: Vec<(u64, Vec<(usize, u64)>)> = vec![(1_000, Vec::new())];
        let mut sizes = vec![1_001];
        while sizes[sizes.len() - 1] < least_entries {
            let magnitude = below(12);
            let files = below(1 << magnitude);
            let last = contents.len() - 1;
            let mut children = vec![(last, 1 + below(2))];
            for _ in 0..3 {
                children.push((below(contents.len() as u64) as usize, 1 + below(20)));
            }
            let inside = children.iter().map(|&(it, count)| sizes[it] * count);
            sizes.push(1 + files + inside.sum::<u64>());
            contents.push((files, children));
        }
        let last = contents.len() - 1;
        let reversed = contents.into_iter().rev().map(|(files, children)| {
            let children = children.into_iter().map(|(it, count)| (last - it, count));
            (files, children.collect())
        });
        Self::new(reversed.collect())
    }

    pub(super) fn kind(&self, kind: usize) -> &Kind {
        &self.kinds[kind]
    }

    pub(super) fn entries(&self) -> u64 {
        self.kinds[0].entries
    }
}
