//! Writes the code of the controller's protocols from their `.proto` files, without protoc.
//!
//! The code is in git, so that nobody who builds the controller or an agent builds a compiler of protocols first:
//! it takes longer than all crates of the agent together. `make protocol` writes it anew, and a test of this
//! crate compares.

#![forbid(unsafe_code)]

use std::error::Error;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A protocol, and the file that has its code.
#[derive(Clone, Copy, Debug)]
pub struct Protocol {
    folder: &'static str,
    file: &'static str,
    package: &'static str,
    code: &'static str,
    codec: Option<&'static str>,
    server: bool,
}

/// All protocols.
pub const PROTOCOLS: [Protocol; 2] = [
    Protocol {
        folder: "hocket-wire/proto",
        file: "hocket/v1/controller.proto",
        package: "hocket.v1",
        code: "hocket-wire/src/v1.rs",
        codec: Some("crate::codec::Lean"),
        server: true,
    },
    Protocol {
        folder: "hocket-controller/proto",
        file: "etcd.proto",
        package: "etcdserverpb",
        code: "hocket-controller/src/standby/etcd_api.rs",
        codec: None,
        server: false,
    },
];

impl Protocol {
    /// Returns the file of the code.
    pub fn path(&self) -> PathBuf {
        crates().join(self.code)
    }

    /// Returns the code, made in a folder that may be written.
    ///
    /// # Errors
    /// What the compiler of the protocol finds, and files that cannot be read or written.
    pub fn code(&self, scratch: &Path) -> Result<String, Box<dyn Error>> {
        let files = protox::compile([self.file], [crates().join(self.folder)])?;
        let mut build = tonic_prost_build::configure()
            .out_dir(scratch)
            .build_server(self.server)
            .emit_rerun_if_changed(false);
        if let Some(codec) = self.codec {
            build = build.codec_path(codec);
        }
        build.compile_fds(files)?;
        let made = scratch.join(format!("{}.rs", self.package));
        let formatted = Command::new("rustfmt")
            .args(["--edition", "2024", "--config-path"])
            .arg(crates().join(".."))
            .arg(&made)
            .status()?;
        if !formatted.success() {
            return Err("rustfmt failed".into());
        }
        let code = fs::read_to_string(made)?;
        let head = format!(
            "// Written by `make protocol` from {}/{}.\n",
            self.folder, self.file
        );
        Ok(head + &code)
    }
}

fn crates() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}
