//! The benchmark runner.
//!
//! It is empty so far: the figures in Benchmarks.md were taken by hand.

fn main() {}
