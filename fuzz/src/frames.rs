//! Any bytes as frames between a rank and its store, and as what stands before messages between ranks.

use hocket_runtime::agreement::Agreement;
use hocket_runtime::wire::{Frame, Header};

/// Reads the bytes as each of them, and writes again what was read.
pub fn run(bytes: &[u8]) {
    if let Some(frame) = Frame::decode(bytes) {
        again(&frame);
    }
    stream(bytes);
    if let Some(Ok(head)) = bytes.get(..Header::BYTES).map(TryInto::try_into)
        && let Some(header) = Header::decode(head)
    {
        assert_eq!(header.encode(), *head);
    }
    let both = (
        bytes.get(..Agreement::BYTES),
        bytes.get(Agreement::BYTES..2 * Agreement::BYTES),
    );
    if let (Some(ours), Some(theirs)) = both {
        let read = |bytes: &[u8]| Agreement::decode(bytes.try_into().expect("so many"));
        let (ours, theirs) = (read(ours), read(theirs));
        assert_eq!(Agreement::decode(&ours.encode()), ours);
        if ours != theirs {
            assert_eq!(ours.differences(&theirs, 1).lines().count(), 1);
        }
    }
}

/// As what arrives piece by piece: frames are found wherever it is cut, or refused.
fn stream(bytes: &[u8]) {
    let mut rest = bytes;
    while let Ok(Some((frame, used))) = Frame::split(rest) {
        assert!(4 < used && used <= rest.len());
        assert_eq!(Frame::receive(rest).expect("it was split off"), frame);
        let early = Frame::split(&rest[..used - 1]);
        assert!(
            matches!(early, Ok(None)),
            "before its end there is no frame"
        );
        again(&frame);
        rest = &rest[used..];
    }
}

fn again(frame: &Frame) {
    let encoded = frame.encode();
    assert_eq!(Frame::decode(&encoded[4..]).as_ref(), Some(frame));
}
