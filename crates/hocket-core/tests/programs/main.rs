//! Programs: the check against all runs of small ones, and lowered plans on arrays.

mod draft;
mod lowered;
mod oracle;
mod raised;
mod rules;
