//! The engine as a user of the library sees it: by its public functions, and by what they leave on disk.
//!
//! One binary, since linking each file by itself takes longer than running it. The modules are filed by
//! what they pin down; [`kit`] and [`child`] are the tools.

mod asking;
mod attributes;
mod calls;
mod child;
mod content;
mod copying;
mod examples;
mod filesystems;
mod kit;
mod limits;
mod observing;
mod overwriting;
mod permissions;
mod preserving;
mod properties;
mod races;
mod removing;
mod rules;
mod sources;
mod storms;
mod waiting;
