//! Names the shared library as programs look for it.

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    let system = std::env::var("CARGO_CFG_TARGET_OS");
    if system.as_deref() == Ok("linux") {
        // The number changes when programs must be compiled anew.
        println!("cargo:rustc-cdylib-link-arg=-Wl,-soname,libthriffty.so.0");
    }
}
