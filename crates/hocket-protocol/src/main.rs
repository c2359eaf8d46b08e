//! Writes the code of all protocols.

use std::error::Error;
use std::{env, fs};

fn main() -> Result<(), Box<dyn Error>> {
    for protocol in hocket_protocol::PROTOCOLS {
        fs::write(protocol.path(), protocol.code(&env::temp_dir())?)?;
    }
    Ok(())
}
