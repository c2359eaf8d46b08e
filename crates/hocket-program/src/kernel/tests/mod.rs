mod oracle;

use super::*;

/// A protocol of round numbers: a byte a microsecond each way, parts of four bytes that are passed on whole.
fn costs() -> Costs {
    Costs {
        fixed: 0.0,
        latency: 0.5,
        sync: 0.0,
        send: 1.0,
        receive: 1.0,
        operand: 0.25,
        link: 1000.0,
        slot: 4.0,
        parts: 1,
        in_flight: 8,
        streams: false,
    }
}

fn send(chunks: u32) -> Step {
    Step {
        sends: true,
        chunks,
        ..Step::default()
    }
}

fn receive(chunks: u32) -> Step {
    Step {
        receives: true,
        chunks,
        ..Step::default()
    }
}

fn block(
    npu: u32,
    send: Option<u32>,
    receive: Option<u32>,
    channel: u32,
    steps: Vec<Step>,
) -> Block {
    Block {
        npu,
        send,
        receive,
        channel,
        steps,
    }
}

/// NPU 0 sends to NPU 1.
fn pair(sent: Vec<Step>, received: Vec<Step>) -> Kernel {
    let blocks = vec![
        block(0, Some(1), None, 0, sent),
        block(1, None, Some(0), 0, received),
    ];
    Kernel {
        npus: 2,
        instances: 1,
        blocks,
    }
}

/// A ring all-gather among eight: chunk k on channel k modulo the number of them.
fn ring(channels: u32) -> Kernel {
    let n = 8;
    let mut blocks = Vec::new();
    for npu in 0..n {
        for channel in 0..channels {
            let mut steps = Vec::new();
            for step in 0..n - 1 {
                if (npu + n - step) % n % channels == channel {
                    steps.push(send(1));
                }
                if (npu + 2 * n - step - 1) % n % channels == channel {
                    steps.push(receive(1));
                }
            }
            blocks.push(block(
                npu,
                Some((npu + 1) % n),
                Some((npu + n - 1) % n),
                channel,
                steps,
            ));
        }
    }
    Kernel {
        npus: n,
        instances: 1,
        blocks,
    }
}

fn duration(kernel: &Kernel, costs: &Costs, chunk: f64) -> f64 {
    durations(kernel, costs, &[chunk]).unwrap()[0]
}

fn close(a: f64, b: f64) {
    assert!((a - b).abs() <= 1e-9 * b.abs().max(1.0), "{a} is not {b}");
}

#[test]
fn a_pipeline_takes_its_rounds_and_the_last_hop() {
    let kernel = pair(vec![send(1)], vec![receive(1)]);
    // Twenty rounds of 4 us at the sender, then latency and the last tile at the receiver.
    close(duration(&kernel, &costs(), 80.0), 80.0 + 0.5 + 4.0);
    // A receiver that is slower sets the pace.
    let slow = Costs {
        receive: 2.0,
        ..costs()
    };
    close(duration(&kernel, &slow, 80.0), 4.0 + 0.5 + 160.0);
    let fixed = Costs {
        fixed: 7.0,
        ..costs()
    };
    close(duration(&kernel, &fixed, 2.0), 7.0 + 2.0 + 0.5 + 2.0);
}

#[test]
fn parts_and_streams_shorten_the_last_hop() {
    let kernel = pair(vec![send(1)], vec![receive(1)]);
    let halves = Costs {
        parts: 2,
        ..costs()
    };
    close(duration(&kernel, &halves, 4.0), 4.0 + 0.5 + 2.0);
    let streams = Costs {
        streams: true,
        ..costs()
    };
    close(duration(&kernel, &streams, 4.0), 0.5 + 4.0);
    // Who receives faster than is sent still waits for the last byte.
    let eager = Costs {
        receive: 0.1,
        ..streams
    };
    close(duration(&kernel, &eager, 4.0), 4.0 + 0.5);
}

#[test]
fn long_messages_go_on_at_the_pace_of_the_last_rounds() {
    let kernel = pair(vec![send(1)], vec![receive(1)]);
    close(duration(&kernel, &costs(), 4000.0), 4000.0 + 0.5 + 4.0);
    let sizes = [4000.0, 2.0, 84.0];
    let together = durations(&kernel, &costs(), &sizes).unwrap();
    for (size, time) in sizes.into_iter().zip(together) {
        close(time, duration(&kernel, &costs(), size));
    }
}

#[test]
fn instances_add_until_the_link_is_full() {
    let kernel = |instances| Kernel {
        instances,
        ..pair(vec![send(1)], vec![receive(1)])
    };
    let narrow = Costs {
        link: 4.0,
        ..costs()
    };
    for instances in [1, 2, 4] {
        close(duration(&kernel(instances), &narrow, 80.0), 84.5);
    }
    // Eight senders share four bytes a microsecond: each has half a byte.
    close(duration(&kernel(8), &narrow, 80.0), 160.0 + 0.5 + 4.0);
    // Separate blocks share it as instances do.
    let mut apart = kernel(4);
    for channel in 1..2 {
        apart
            .blocks
            .push(block(0, Some(1), None, channel, vec![send(1)]));
        apart
            .blocks
            .push(block(1, None, Some(0), channel, vec![receive(1)]));
    }
    close(duration(&apart, &narrow, 80.0), 160.0 + 0.5 + 4.0);
}

#[test]
fn a_ring_in_program_order_does_not_add_channels() {
    // With s to send a tile, r to receive one and l before a receiver starts, a hop takes l and the longer of both. A
    // round takes 7 (s + r) on one channel; on two and four, the next round waits for chunks to come round.
    let costs = Costs {
        send: 1.5,
        latency: 0.75,
        streams: true,
        ..costs()
    };
    let (s, r) = (6.0, 4.0);
    let hop = 0.75 + 6.0;
    let pace = |channels| {
        let times = durations(&ring(channels), &costs, &[4.0 * 60.0, 4.0 * 70.0]).unwrap();
        (times[1] - times[0]) / 10.0
    };
    close(pace(1), 7.0 * (s + r));
    close(pace(2), 6.0 * hop + s);
    close(pace(4), 4.0 * hop + s + r);
    close(pace(8), s + r);
}

#[test]
fn operands_and_passes_take_their_time() {
    let step = |receives, sends, operands| Step {
        receives,
        sends,
        operands,
        chunks: 1,
        waits: Vec::new(),
    };
    let local = |operands| Kernel {
        npus: 1,
        instances: 1,
        blocks: vec![block(0, None, None, 0, vec![step(false, false, operands)])],
    };
    close(duration(&local(1), &costs(), 4.0), 1.0);
    close(duration(&local(7), &costs(), 4.0), 7.0);
    // 0 -> 1 -> 2; the middle adds an operand while it passes on.
    let blocks = vec![
        block(0, Some(1), None, 0, vec![send(1)]),
        block(1, Some(2), Some(0), 0, vec![step(true, true, 1)]),
        block(2, None, Some(1), 0, vec![receive(1)]),
    ];
    let chain = Kernel {
        npus: 3,
        instances: 1,
        blocks,
    };
    close(
        duration(&chain, &costs(), 4.0),
        4.0 + 0.5 + (4.0 + 1.0) + 0.5 + 4.0,
    );
}

#[test]
fn a_dependency_holds_in_each_round() {
    let wait = |block, step| Step {
        waits: vec![Dependency { block, step }],
        ..Step::default()
    };
    let work = Step {
        operands: 4,
        chunks: 1,
        ..Step::default()
    };
    let blocks = vec![
        block(0, None, None, 0, vec![work.clone()]),
        block(0, None, None, 1, vec![wait(0, 0), work]),
    ];
    let kernel = Kernel {
        npus: 1,
        instances: 1,
        blocks,
    };
    close(duration(&kernel, &costs(), 40.0), 4.0 + 40.0);
    let late = Costs {
        sync: 0.75,
        ..costs()
    };
    close(duration(&kernel, &late, 40.0), 4.0 + 0.75 + 40.0);
}

#[test]
fn who_sends_more_than_slots_hold_before_receiving_is_stuck() {
    let steps = || vec![send(9), receive(9)];
    let blocks = vec![
        block(0, Some(1), Some(1), 0, steps()),
        block(1, Some(0), Some(0), 0, steps()),
    ];
    let kernel = Kernel {
        npus: 2,
        instances: 1,
        blocks,
    };
    // A block that waits for data is not why.
    let idle = block(0, None, Some(1), 1, vec![receive(1)]);
    let last = block(
        1,
        Some(0),
        None,
        1,
        vec![Step {
            waits: vec![Dependency { block: 1, step: 1 }],
            ..send(1)
        }],
    );
    let mut more = kernel.clone();
    more.blocks.extend([idle, last]);
    more.blocks.rotate_left(2);
    more.blocks[1].steps[0].waits[0].block = 3;
    assert_eq!(
        durations(&more, &costs(), &[4.0]),
        Err(KernelError::Stuck { block: 2, step: 0 })
    );
    // Small chunks go together in one transfer; of large ones each is a transfer of its own, nine in all.
    assert!(durations(&kernel, &costs(), &[0.25]).is_ok());
    let error = durations(&kernel, &costs(), &[4.0]).unwrap_err();
    assert_eq!(error, KernelError::Stuck { block: 0, step: 0 });
    let text =
        "thread block 0: waits at step 0 for ever, as all others do; send less before receiving";
    assert_eq!(error.to_string(), text);
}

#[test]
fn blocks_that_do_not_fit_are_refused() {
    let error = |kernel: &Kernel| durations(kernel, &costs(), &[1.0]).unwrap_err().to_string();
    let wrong = [
        (
            pair(vec![send(1)], vec![]),
            "thread block 1: does not receive, step by step, as many chunks as block 0 sends",
        ),
        (
            pair(vec![send(2)], vec![receive(1)]),
            "thread block 1: does not receive, step by step, as many chunks as block 0 sends",
        ),
        (
            pair(vec![send(0)], vec![receive(0)]),
            "thread block 0: step 0 moves no chunks",
        ),
        (
            pair(vec![send(1 << 20)], vec![receive(1 << 20)]),
            "thread block 0: step 0 moves 1048576 chunks, more than 65536",
        ),
        (
            pair(vec![receive(1)], vec![]),
            "thread block 0: step 0 receives, but the block receives from none",
        ),
        (
            pair(vec![], vec![send(1)]),
            "thread block 1: step 0 sends, but the block sends to none",
        ),
    ];
    for (kernel, text) in wrong {
        assert_eq!(error(&kernel), text);
    }
    let mut kernel = pair(vec![send(1)], vec![receive(1)]);
    kernel.blocks.pop();
    assert_eq!(
        error(&kernel),
        "thread block 0: no block of NPU 1 receives what it sends"
    );
    kernel.npus = 1;
    assert_eq!(
        error(&kernel),
        "thread block 0: there is no NPU 1; there are 1"
    );
    let mut kernel = pair(vec![send(1)], vec![receive(1)]);
    kernel.blocks.remove(0);
    assert_eq!(
        error(&kernel),
        "thread block 0: no block of NPU 0 sends what it receives"
    );
    let mut kernel = pair(vec![send(1)], vec![receive(1)]);
    kernel.blocks.push(kernel.blocks[0].clone());
    assert_eq!(
        error(&kernel),
        "thread block 2: another one sends to NPU 1 on channel 0"
    );
    let mut kernel = pair(vec![send(1)], vec![receive(1)]);
    kernel.blocks.push(kernel.blocks[1].clone());
    assert_eq!(
        error(&kernel),
        "thread block 2: another one receives from NPU 0 on channel 0"
    );
    let mut kernel = pair(vec![send(1)], vec![receive(1)]);
    kernel.blocks[0].steps[0]
        .waits
        .push(Dependency { block: 1, step: 4 });
    assert_eq!(
        error(&kernel),
        "thread block 0: step 0 waits for step 4 of block 1, which does not exist"
    );
    let kernel = Kernel {
        instances: 0,
        ..pair(vec![send(1)], vec![receive(1)])
    };
    assert_eq!(
        error(&kernel),
        "instances: is out of range; give what was measured"
    );
}

#[test]
fn costs_that_are_no_costs_are_refused() {
    let kernel = pair(vec![send(1)], vec![receive(1)]);
    let of = |costs: Costs| durations(&kernel, &costs, &[1.0]);
    assert_eq!(
        of(Costs {
            send: 0.0,
            ..costs()
        }),
        Err(KernelError::Cost { name: "send" })
    );
    assert_eq!(
        of(Costs {
            link: f64::NAN,
            ..costs()
        }),
        Err(KernelError::Cost { name: "link" })
    );
    assert_eq!(
        of(Costs {
            latency: -1.0,
            ..costs()
        }),
        Err(KernelError::Cost { name: "latency" })
    );
    assert_eq!(
        of(Costs {
            parts: 0,
            ..costs()
        }),
        Err(KernelError::Cost { name: "parts" })
    );
    for chunk in [0.0, -1.0, f64::INFINITY, f64::NAN] {
        assert_eq!(
            durations(&kernel, &costs(), &[chunk]),
            Err(KernelError::Cost { name: "chunks" })
        );
    }
}
