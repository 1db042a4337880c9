//! The first byte of each frame. Lower bits of some are flags: the table in `frame.rs` says which.

pub(super) const FRAME_PADDING: u8 = 0x00;
pub(super) const FRAME_PING: u8 = 0x01;
pub(super) const FRAME_ACK: u8 = 0x02;
pub(super) const FRAME_PNACK: u8 = 0x03;
pub(super) const FRAME_SNACK_STREAM: u8 = 0x04;
pub(super) const FRAME_SNACK_OBJECT: u8 = 0x05;
pub(super) const FRAME_STREAM: u8 = 0x08;
pub(super) const FRAME_OBJECT: u8 = 0x0c;
pub(super) const FRAME_DATAGRAM: u8 = 0x10;
pub(super) const FRAME_MAX_STREAMS: u8 = 0x12;
pub(super) const FRAME_MAX_DATA: u8 = 0x14;
pub(super) const FRAME_MAX_STREAM_DATA: u8 = 0x15;
pub(super) const FRAME_RESET_STREAM: u8 = 0x16;
pub(super) const FRAME_STOP_SENDING: u8 = 0x17;
pub(super) const FRAME_CLOSE: u8 = 0x18;
pub(super) const FRAME_PATH_CHALLENGE: u8 = 0x19;
pub(super) const FRAME_PATH_RESPONSE: u8 = 0x1a;
pub(super) const FRAME_PATH_DROPPED: u8 = 0x1b;
pub(super) const FRAME_PATH_HINT: u8 = 0x1c;
pub(super) const FRAME_RELAY_OFFER: u8 = 0x1e;
pub(super) const FRAME_RELAY_CONSENT: u8 = 0x1f;
pub(super) const FRAME_RELAY_REFUSED: u8 = 0x20;
pub(super) const FRAME_ADDRESSES: u8 = 0x22;
