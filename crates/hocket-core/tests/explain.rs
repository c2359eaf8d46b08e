//! The parts of an error are those of its text: nothing is lost, and nothing is said twice.

use hocket_core::algorithms::{Algorithm, PlanOptions, plan};
use hocket_core::collective::{Collective, CollectiveError, CollectiveKind};
use hocket_core::explain::Explain;
use hocket_core::id::{NpuId, TransferId};
use hocket_core::iteration::GraphError;
use hocket_core::multirail::{Rail, Uneven};
use hocket_core::plan::{PlanError, Routing};
use hocket_core::progress::Silent;
use hocket_core::report::ReportError;
use hocket_core::simulate::SimulateError;
use hocket_core::synthesis::Unwinding;
use hocket_core::topology::{TopologyError, build};
use hocket_core::units::{Bandwidth, Time};
use hocket_core::verify::VerifyError;

/// Checks the parts of an error against its text; gives field and remedy.
fn parts(error: &dyn Explain) -> (Option<&'static str>, Option<&'static str>) {
    let (field, remedy) = (error.field(), error.remedy());
    let mut text = error.why();
    if let Some(field) = field {
        text = format!("{field}: {text}");
    }
    if let Some(remedy) = remedy {
        text = format!("{text}; {remedy}");
    }
    assert_eq!(text, error.to_string());
    if let Some(field) = field {
        assert!(!error.why().contains(&format!("{field}: ")), "{text}");
    }
    if let Some(remedy) = remedy {
        assert!(!error.why().contains(remedy), "{text}");
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
    assert_eq!(parts(&error), (None, Some("use link fidelity")));
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
    assert_eq!(parts(&error), (None, Some("use link fidelity")));
}
