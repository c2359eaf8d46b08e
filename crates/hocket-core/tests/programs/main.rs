//! Programs: the check against all runs of small ones, of one call and of several, and lowered plans on arrays.

mod calls;
mod draft;
mod every_run;
mod compiled;
mod oracle;
mod decompiled;
mod rules;
