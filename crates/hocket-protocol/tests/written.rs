//! Is the code in git that of the protocols?

use std::fs;
use std::path::Path;

use hocket_protocol::PROTOCOLS;

#[test]
fn the_code_in_git_is_that_of_the_protocols() {
    for protocol in PROTOCOLS {
        let code = protocol
            .code(Path::new(env!("CARGO_TARGET_TMPDIR")))
            .unwrap();
        let written = fs::read_to_string(protocol.path()).unwrap();
        assert!(
            code == written,
            "{protocol:?}: write it anew with make protocol"
        );
    }
}
