//! Tests of the engine through its public functions and their effects on disk.
//!
//! `cargo test -p fuc_engine -- --include-ignored` also runs the slow ones.
//!
//! They are one binary, because linking one for each file takes longer than running it. Each module covers one
//! subject; [`kit`] and [`child`] are tools.

mod asking;
mod attributes;
mod bases;
mod calls;
mod cancelling;
mod child;
mod content;
mod copying;
mod counting;
mod dividing;
mod examples;
mod filesystems;
mod filter_races;
mod filtering;
mod hub;
mod kit;
mod limits;
mod looking_ahead;
mod mirroring;
mod observing;
mod properties;
mod races;
mod removing;
mod sharing;
mod sharing_copies;
mod storms;
mod waiting;
