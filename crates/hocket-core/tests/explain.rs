//! The parts of an error are those of its text: nothing is lost, and nothing is said twice.

use std::borrow::Cow;

use hocket_core::algorithms::{Algorithm, PlanOptions, plan};
use hocket_core::cluster::ClusterError;
use hocket_core::collective::{Collective, CollectiveError, CollectiveKind};
use hocket_core::explain::Explain;
use hocket_core::id::{NpuId, TransferId};
use hocket_core::iteration::GraphError;
use hocket_core::multirail::{Rail, Uneven};
use hocket_core::plan::{PlanError, Routing};
use hocket_core::progress::Silent;
use hocket_core::replay::{Place, ReplayError};
use hocket_core::report::ReportError;
use hocket_core::routing::RoutingError;
use hocket_core::simulate::SimulateError;
use hocket_core::synthesis::Unwinding;
use hocket_core::topology::{TopologyError, build};
use hocket_core::trace::{Fault, TraceError};
use hocket_core::units::{Bandwidth, Time};
use hocket_core::verify::VerifyError;

/// Checks the parts of an error against its text; gives field and remedy.
fn parts(error: &dyn Explain) -> (Option<&'static str>, Option<String>) {
    let field = error.field();
    let remedy = error.remedy().map(Cow::into_owned);
    let mut text = error.why();
    if let Some(field) = field {
        text = format!("{field}: {text}");
    }
    if let Some(origin) = error.origin() {
        text = format!("{origin}: {text}");
        assert!(!error.why().contains(&*origin), "{text}");
    }
    if let Some(remedy) = &remedy {
        text = format!("{text}; {remedy}");
        assert!(!error.why().contains(remedy), "{text}");
    }
    assert_eq!(text, error.to_string());
    if let Some(field) = field {
        assert!(!error.why().contains(&format!("{field}: ")), "{text}");
    }
    (field, remedy)
}

fn text() -> String {
    "what is wrong".to_owned()
}

#[test]
fn of_plans() {
    let errors = [
        PlanError::TooLong,
        PlanError::TooManyChunks {
            what: text(),
            bytes: 3,
            chunks: 4,
        },
        PlanError::TooLarge {
            transfers: 1,
            bytes: 2,
            limit: 1,
        },
        PlanError::Memory {
            algorithm: "themis",
            chunks: 1,
            steps: 2,
            bytes: 3,
            limit: 1,
        },
        PlanError::Collective(CollectiveError::ZeroSize),
    ];
    for error in errors {
        assert!(parts(&error).1.is_some(), "{error}");
    }
    let malformed = PlanError::Malformed { why: text() };
    assert_eq!(parts(&malformed), (Some("plan"), None));
    let routing = "nonsense".parse::<Routing>().expect_err("no routing");
    assert_eq!(parts(&routing).0, Some("routing"));
    let unwinding = "nonsense".parse::<Unwinding>().expect_err("no unwinding");
    assert!(parts(&unwinding).1.is_some());
}

#[test]
fn of_collectives_and_networks() {
    let npu = NpuId(1);
    let too_large = CollectiveError::TooLarge {
        kind: CollectiveKind::AllGather,
        size: 1,
        npus: 2,
    };
    for error in [
        CollectiveError::TooFewNpus { count: 1 },
        CollectiveError::DuplicateNpu { npu },
        CollectiveError::ZeroSize,
        too_large,
    ] {
        assert!(parts(&error).1.is_some(), "{error}");
        assert_eq!(
            parts(&VerifyError::Collective(error.clone())),
            parts(&error)
        );
    }
    for error in [
        TopologyError::DuplicateDevice { name: text() },
        TopologyError::SelfLoop { name: text() },
        TopologyError::TooLarge {
            what: text(),
            bytes: 2,
            limit: 1,
        },
    ] {
        assert!(parts(&error).1.is_some(), "{error}");
    }
}

#[test]
fn of_simulations() {
    for error in [
        SimulateError::Deadlock {
            waiting: 1,
            first: TransferId(0),
        },
        SimulateError::Sprayed,
        SimulateError::Buffers {
            waiting: 1,
            cycle: text(),
        },
        SimulateError::TooLong,
        SimulateError::Malformed { why: text() },
    ] {
        assert!(parts(&error).1.is_some(), "{error}");
    }
    let packets = SimulateError::Packets { why: text() };
    assert_eq!(parts(&packets), (Some("packets"), None));
    assert!(
        parts(&ReportError::NoDimensions { topology: text() })
            .1
            .is_some()
    );
    assert!(parts(&GraphError::TooLong).1.is_some());
}

#[test]
fn who_looks_for_rails_is_told_what_is_missing() {
    let rate = Bandwidth::from_bytes_per_second(1_000_000_000).expect("positive");
    let whole = build::torus(&[4, 4], rate, Time::ZERO).expect("a torus");
    assert_eq!(Rail::check(&whole), Ok(()));
    let broken = whole
        .without(&[], &[hocket_core::id::LinkId(0)])
        .expect("a network");
    let error = Rail::check(&broken).expect_err("a link is missing");
    assert!(
        matches!(
            error,
            Uneven::Links {
                due: 64,
                found: 63,
                ..
            }
        ),
        "{error}"
    );
    assert_eq!(parts(&error), (None, Some("use link fidelity".to_owned())));
    let all_reduce = Collective::among_all(CollectiveKind::AllReduce, &broken, 1 << 20);
    let options = PlanOptions::new(Algorithm::Themis);
    let refused = plan(
        &broken,
        &all_reduce.expect("a collective"),
        &options,
        &mut Silent,
    );
    assert!(matches!(refused, Err(PlanError::NotApplicable { .. })));
    let limited = build::switch(4, rate, Time::ZERO, Some(rate)).expect("a switch");
    let error = Rail::check(&limited).expect_err("the switch has a limit");
    assert!(matches!(error, Uneven::Limit { .. }), "{error}");
    assert_eq!(parts(&error), (None, Some("use link fidelity".to_owned())));
}

#[test]
fn what_cannot_run_is_the_origin() {
    let refused = PlanError::NotApplicable {
        algorithm: "ring",
        why: text(),
    };
    assert_eq!(parts(&refused), (None, None));
    assert_eq!(refused.to_string(), "ring: what is wrong");
    assert_eq!(refused.origin().as_deref(), Some("ring"));
    assert_eq!(refused.why(), "what is wrong");
}

#[test]
fn of_jobs_and_their_paths() {
    for error in [
        RoutingError::NotClos {
            name: text(),
            why: text(),
        },
        RoutingError::UnknownTor {
            flow: 3,
            tor: 9,
            last: 4,
        },
        RoutingError::SameTor { flow: 3, tor: 1 },
        RoutingError::TooHeavy { scale: 2 },
        RoutingError::Cut { flows: text() },
    ] {
        assert!(parts(&error).1.is_some(), "{error}");
        assert_eq!(parts(&ClusterError::Routing(error.clone())), parts(&error));
    }
    let time = Time::ZERO;
    let (job, nic, flows) = (|| "a".to_owned(), text, text);
    for (error, origin) in [
        (
            ClusterError::Cut {
                job: job(),
                flows: flows(),
            },
            Some("job 'a'"),
        ),
        (
            ClusterError::Lost {
                job: job(),
                nic: nic(),
                time,
            },
            Some("job 'a'"),
        ),
        (ClusterError::TooLong, None),
    ] {
        assert!(parts(&error).1.is_some(), "{error}");
        assert_eq!(error.origin().as_deref(), origin);
    }
}

#[test]
fn of_traces() {
    let (file, after) = (|| "a.0.et".to_owned(), Some(4));
    let node = |fault| TraceError::Node {
        file: file(),
        id: 3,
        name: "send".to_owned(),
        fault: Box::new(fault),
    };
    for (error, origin) in [
        (TraceError::NoFiles, None),
        (TraceError::Empty { file: file() }, Some("a.0.et")),
        (
            TraceError::NoMetadata {
                file: file(),
                why: text(),
            },
            Some("a.0.et"),
        ),
        (
            TraceError::Truncated {
                file: file(),
                byte: 2,
                after,
            },
            Some("a.0.et"),
        ),
        (
            TraceError::Overrun {
                file: file(),
                byte: 2,
                after: None,
                length: 5,
                left: 1,
            },
            Some("a.0.et"),
        ),
        (
            TraceError::Group {
                id: 2,
                why: text(),
                remedy: "list it once".to_owned(),
            },
            Some("group 2"),
        ),
        (TraceError::TooLarge { what: "nodes" }, None),
        (
            node(Fault::UnknownType { given: 12 }),
            Some("a.0.et: node 3 \"send\""),
        ),
    ] {
        assert!(parts(&error).1.is_some(), "{error}");
        assert_eq!(error.origin().as_deref(), origin);
    }
    let given = text;
    for fault in [
        Fault::UnknownCall { given: given() },
        Fault::NoAttribute {
            attribute: "comm_src",
        },
        Fault::WrongKind {
            attribute: "comm_size",
            given: "text",
            right: "a number",
        },
        Fault::OutOfRange {
            attribute: "comm_tag",
            given: -1,
            most: 7,
        },
        Fault::BadGroup { given: given() },
        Fault::UnknownGroup {
            group: 7,
            known: "0, 1".to_owned(),
        },
        Fault::NotInGroup { rank: 1, group: 7 },
        Fault::SomeDimensions,
        Fault::TooMuch { given: 9, ranks: 3 },
        Fault::Duplicate { first: given() },
        Fault::Dangling {
            kind: "control",
            on: 4,
        },
        Fault::Dangling {
            kind: "data",
            on: 4,
        },
        Fault::Cycle { path: given() },
        Fault::NotOwn {
            what: "send",
            attribute: "comm_src",
            given: 4,
            rank: 3,
        },
        Fault::NoSuchRank {
            attribute: "comm_dst",
            given: 4,
            last: 3,
        },
        Fault::Unmatched {
            what: "send",
            other: "receive",
            src: 0,
            dst: 1,
            tag: 2,
        },
        Fault::Sizes {
            sent: 1,
            receive: given(),
            expected: 2,
        },
    ] {
        let remedy = parts(&fault).1;
        assert!(remedy.is_some(), "{fault}");
        assert_eq!(parts(&node(fault)).1, remedy);
    }
    let place = |rank| {
        Box::new(Place {
            rank,
            id: 4,
            name: "sum".to_owned(),
        })
    };
    let stuck = ReplayError::Stuck {
        waits: place(0),
        other: place(1),
    };
    assert!(
        parts(&stuck)
            .1
            .is_some_and(|remedy| remedy.contains("order of their calls"))
    );
    assert_eq!(stuck.origin().as_deref(), Some("rank 0"));
}
