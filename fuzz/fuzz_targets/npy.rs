//! Headers of `.npy` files, as the command-line program reads them.
#![no_main]

use std::path::PathBuf;

use libfuzzer_sys::fuzz_target;

#[path = "../../crates/fft-cli/src/data/npy/dtype.rs"]
mod dtype;
#[path = "../../crates/fft-cli/src/data/npy/header.rs"]
mod header;
#[path = "../../crates/fft-cli/src/data/npy/item.rs"]
mod item;
use dtype::Dtype;
use item::Item;

thread_local! {
    static FILE: PathBuf = tempfile::NamedTempFile::new().unwrap().keep().unwrap().1;
}

fuzz_target!(|data: &[u8]| {
    FILE.with(|path| {
        std::fs::write(path, data).unwrap();
        if let Ok(header) = header::Header::open(path) {
            let points: usize = header.shape.iter().product();
            let bytes = points * header.item.bytes();
            assert_eq!(data.len() as u64, header.data_offset + bytes as u64);
        }
    });
});
