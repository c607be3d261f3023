//! Trees with a billion entries that need little memory: all directories of one kind have the same content.

/// A tree. The operand is the only directory of the last kind.
#[derive(Default)]
pub(super) struct Shape {
    kinds: Vec<Kind>,
}

/// A kind of directories.
pub(super) struct Kind {
    pub(super) files: u64,
    /// Earlier kinds, and how many directories of each are in one of this kind.
    pub(super) children: Vec<(usize, u64)>,
    /// The entries of one such directory, with itself and everything below.
    pub(super) entries: u64,
}

impl Shape {
    /// Adds a kind of directories, and returns its number.
    fn add(&mut self, files: u64, children: Vec<(usize, u64)>) -> usize {
        let below = children.iter();
        let below = below.map(|&(kind, count)| count * self.kinds[kind].entries);
        self.kinds.push(Kind {
            files,
            entries: 1 + files + below.sum::<u64>(),
            children,
        });
        self.operand()
    }

    /// Makes a tree with as many levels of subdirectories as `subdirectories` has numbers. Each directory has `files`.
    pub(super) fn levels(subdirectories: &[u64], files: u64) -> Self {
        let mut shape = Self::default();
        let mut kind = shape.add(files, Vec::new());
        for &count in subdirectories.iter().rev() {
            kind = shape.add(files, vec![(kind, count)]);
        }
        shape
    }

    /// Makes a chain with other directories beside each one.
    pub(super) fn comb(depth: usize, beside: u64, files: u64) -> Self {
        let mut shape = Self::default();
        let tooth = shape.add(files, Vec::new());
        let mut kind = shape.add(files, vec![(tooth, beside)]);
        for _ in 1..depth {
            kind = shape.add(files, vec![(tooth, beside), (kind, 1)]);
        }
        shape
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
        let mut shape = Self::default();
        let mut last = shape.add(1_000, Vec::new());
        while shape.entries() < least_entries {
            let magnitude = below(12);
            let files = below(1 << magnitude);
            let mut children = vec![(last, 1 + below(2))];
            for _ in 0..3 {
                children.push((below(last as u64 + 1) as usize, 1 + below(20)));
            }
            last = shape.add(files, children);
        }
        shape
    }

    pub(super) fn kind(&self, kind: usize) -> &Kind {
        &self.kinds[kind]
    }

    pub(super) fn operand(&self) -> usize {
        self.kinds.len() - 1
    }

    pub(super) fn entries(&self) -> u64 {
        self.kinds[self.operand()].entries
    }
}
