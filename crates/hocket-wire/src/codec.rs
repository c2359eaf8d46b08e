//! Messages in buffers that begin small: most are of a few hundred bytes, and a controller has as many as hosts.

use std::marker::PhantomData;

use prost::Message;
use tonic::codec::{BufferSettings, Codec};
use tonic_prost::{ProstCodec, ProstDecoder, ProstEncoder};

/// Bytes that a buffer has at first.
const FIRST: usize = 512;
/// A writer that has so many bytes hands them on.
const MOST: usize = 32 << 10;

/// Writes `T` and reads `U`.
#[derive(Debug)]
pub(crate) struct Lean<T, U>(PhantomData<(T, U)>);

impl<T, U> Default for Lean<T, U> {
    fn default() -> Self {
        Self(PhantomData)
    }
}

impl<T, U> Codec for Lean<T, U>
where
    T: Message + Send + 'static,
    U: Message + Default + Send + 'static,
{
    type Encode = T;
    type Decode = U;
    type Encoder = ProstEncoder<T>;
    type Decoder = ProstDecoder<U>;

    fn encoder(&mut self) -> Self::Encoder {
        ProstCodec::<T, U>::raw_encoder(BufferSettings::new(FIRST, MOST))
    }

    fn decoder(&mut self) -> Self::Decoder {
        ProstCodec::<T, U>::raw_decoder(BufferSettings::new(FIRST, MOST))
    }
}
