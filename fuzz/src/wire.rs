//! Any bytes as batches of hosts and of the controller, and any messages there and back.

use hocket_wire::v1::{ControllerBatch, HostBatch};
use hocket_wire::{controller_batch, host_batch, read_controller_batch, read_host_batch};
use prost::Message;

use super::draw::Draw;
use super::messages::{from_host, to_host};

/// Reads the bytes, or what is drawn of them, and writes it again.
pub fn run(bytes: &[u8]) {
    if let Ok(batch) = HostBatch::decode(bytes) {
        host(batch);
    }
    if let Ok(batch) = ControllerBatch::decode(bytes) {
        controller(batch);
    }
    let mut draw = Draw::new(bytes);
    let from: Vec<_> = (0..draw.below(3))
        .map(|_| from_host(&mut draw, 1))
        .collect();
    let encoded = host_batch(&from).encode_to_vec();
    host(HostBatch::decode(&encoded[..]).expect("it was encoded"));
    let to: Vec<_> = (0..draw.below(3)).map(|_| to_host(&mut draw, 1)).collect();
    let encoded = controller_batch(&to).encode_to_vec();
    controller(ControllerBatch::decode(&encoded[..]).expect("it was encoded"));
}

fn host(batch: HostBatch) {
    match read_host_batch(batch) {
        Ok(messages) => {
            let again = read_host_batch(host_batch(&messages));
            assert_eq!(again.as_ref(), Ok(&messages));
        }
        Err(error) => assert_eq!(error.to_string().lines().count(), 1),
    }
}

fn controller(batch: ControllerBatch) {
    match read_controller_batch(batch) {
        Ok(messages) => {
            let again = read_controller_batch(controller_batch(&messages));
            assert_eq!(again.as_ref(), Ok(&messages));
        }
        Err(error) => assert_eq!(error.to_string().lines().count(), 1),
    }
}
