//! Why there is no path, in words.

use hocket_control::agent::Why;
use hocket_control::message::{Reason, Refusal};

/// Returns why a flow has no path, in words.
pub(super) fn word(why: Why) -> &'static str {
    match why {
        Why::Small => "too few bytes",
        Why::TooMany => "too many flows",
        Why::Away => "the controller is away",
        Why::NoAnswer => "no answer in time",
        Why::Refused(why) => refusal(why),
        Why::Revoked(Reason::Local) => "both ends are below one switch",
        Why::Revoked(Reason::UnknownHost) => "the receiver's agent is away",
        Why::Revoked(_) => "no path",
        Why::Forgotten => "the controller does not know it",
        Why::Worse => "the path is bad",
    }
}

pub(super) fn refusal(why: Refusal) -> &'static str {
    match why {
        Refusal::BadNumber => "refused: bad number",
        Refusal::NotItsAddress => "refused: not an address of this host",
        Refusal::UnknownAddress => "refused: the receiver is not in the fabric",
        Refusal::NotItsJob => "refused: not a job of this host",
        Refusal::TooMany => "refused: too many flows of this host",
        Refusal::TooFast => "refused: too many flows a second",
        Refusal::Full => "refused: too many flows",
    }
}
