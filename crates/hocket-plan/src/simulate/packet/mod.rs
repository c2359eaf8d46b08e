//! Packet fidelity: packets and flits over routers with virtual channels.
//!
//! Every device is an input-queued router. A message is cut into packets, a packet into flits. A sender
//! has a queue for each of its links; a link has virtual channels, each with a buffer at its end. A
//! packet's head takes a virtual channel that nobody holds and whose buffer has room for all of the
//! packet (virtual cut-through with credits), and holds it until its tail has left. The packets that
//! hold one share the link flit by flit: turns go round the ports that the flits came in by, then round
//! the channels of a port. A packet follows its transfer's route. A switch with a bandwidth limit lets
//! one flit through at a time, its links in turn. A crossbar never limits what a port sends to several
//! links in one cycle. What arrives at its destination is taken out at once, and the room of a packet is
//! given back when its tail is there. A message has ended when all its packets have arrived, and are
//! summed where summing takes time, one message at a time in the order in which they come. What waits
//! for it starts in the next cycle.
//!
//! A head needs three cycles more than the link at each router (a virtual channel, the link, the
//! switch), the flits behind it two.
//!
//! # Source
//! Dally and Towles, Principles and Practices of Interconnection Networks, chapters 13 and 16; iSLIP:
//! McKeown, The iSLIP scheduling algorithm for input-queued switches, 1999. The stages and their
//! cycles are BookSim2's, as is what it calls a separable iSLIP allocator.

mod allocation;
mod deadlock;
mod engine;
mod forwarding;
mod options;
mod ports;
mod spray;

pub use options::PacketOptions;

pub(super) use engine::simulate;
