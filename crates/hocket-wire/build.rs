//! Makes the code of the protocol, without protoc.

fn main() -> Result<(), Box<dyn std::error::Error>> {
    println!("cargo:rerun-if-changed=proto");
    let files = protox::compile(["hocket/v1/controller.proto"], ["proto"])?;
    tonic_prost_build::configure()
        .codec_path("crate::codec::Lean")
        .compile_fds(files)?;
    Ok(())
}
