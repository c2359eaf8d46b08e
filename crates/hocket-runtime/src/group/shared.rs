//! Memory that all ranks of a group see, for arrays of the caller.

use std::sync::Arc;

use hocket_base::id::narrow;
use hocket_plan::collective::CollectiveKind;

use super::{Board, Group, NO_MEMORY, Request};
use crate::agreement::{Agreement, Way};
use crate::error::{Code, Failure};
use crate::memory;
use crate::number::{Dtype, Reduction};
use crate::window::Exchange;

impl Group {
    /// Makes memory with a part of so many bytes for each rank, that all of them see: arrays there are summed where they are.
    /// All ranks do so alike. `None` if one of them cannot.
    ///
    /// # Errors
    /// [`Failure`]; the group is dead then, except after [`Code::Invalid`].
    pub fn allocate(
        &mut self,
        bytes: usize,
        stop: &mut dyn FnMut() -> bool,
    ) -> Result<Option<Arc<Board>>, Failure> {
        use std::os::fd::AsRawFd;
        if !self.shares() {
            return Err(Failure::new(Code::Invalid, NO_MEMORY));
        }
        let own = memory::file();
        let number = own
            .as_ref()
            .map_or(0, |file| u64::from(file.as_raw_fd().unsigned_abs()));
        let said = self.tell_all([number, bytes as u64], stop)?;
        if let Some(rank) = said.iter().position(|each| each[1] != bytes as u64) {
            let why = format!("rank {rank} asks for {} bytes, not {bytes}", said[rank][1]);
            let failure = Failure::new(Code::Mismatch, why).of(Some(narrow(rank)), self.calls);
            self.settle(Err(failure))?;
        }
        let (rank, ranks) = (self.rank() as usize, said.len());
        let place = (
            self.links.members[0].process,
            u32::try_from(said[0][0]).unwrap_or(0),
        );
        let made = own.filter(|_| place.1 > 0).and_then(|own| {
            let file = memory::reach(own, place)?;
            let len = Board::stride(bytes).checked_mul(ranks)?;
            memory::lengthen(&file, len)?;
            let board = Board::new(memory::Mapping::large(&file, len)?, rank, bytes);
            // The others open it by its number, so it stays open until all have it.
            Some((board, file))
        });
        let votes = self.tell_all([made.is_some().into(), 0], stop)?;
        let shelf = &mut self.window.as_mut().expect("it shares memory").shelf;
        let all_have = votes.iter().all(|vote| vote[0] == 1);
        Ok(made.filter(|_| all_have).map(|(board, _)| shelf.put(board)))
    }

    /// Exchanges what each rank says, through shared memory.
    fn tell_all(
        &mut self,
        own: [u64; 2],
        stop: &mut dyn FnMut() -> bool,
    ) -> Result<Vec<[u64; 2]>, Failure> {
        let mut said = vec![[0; 2]; self.size() as usize];
        let request = Request {
            dtype: Dtype::U64,
            op: Reduction::Sum,
            elements: 2 * said.len() as u64,
            by_memory: true,
        };
        let exchange = Exchange {
            kind: CollectiveKind::AllGather,
            rank: self.rank() as usize,
            root: 0,
            dtype: request.dtype,
            op: request.op,
            input: own.as_ptr().cast(),
            output: said.as_mut_ptr().cast(),
            bytes: size_of_val(said.as_slice()),
            agreement: self.open(
                Agreement::BOARD,
                (CollectiveKind::AllGather, 0),
                &request,
                Way::Window,
            )?,
            timeout: self.options.timeout,
        };
        let window = self.window.as_mut().expect("the group shares memory");
        let ended = window.run(&exchange, &mut self.control, stop);
        self.settle(ended)?;
        Ok(said)
    }
}
