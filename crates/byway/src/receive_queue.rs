//! Bytes that wait for the application: pieces as they came, and between them what is too little
//! for that, gathered.

use crate::shared_buffers::SharedBuffers;
use crate::uninit_buffer::FilledBuffer;
use std::collections::VecDeque;

/// A queue of bytes, written at one end and read at the other.
#[derive(Debug, Default)]
pub struct ByteQueue {
    parts: VecDeque<FilledBuffer>,
    length: usize,
    /// Whether the last part gathers.
    gathers: bool,
}

impl ByteQueue {
    /// The number of bytes.
    pub const fn len(&self) -> usize {
        self.length
    }

    /// Whether there are no bytes.
    pub const fn is_empty(&self) -> bool {
        self.length == 0
    }

    /// Appends a piece, which is not empty.
    pub fn push(&mut self, piece: Vec<u8>) {
        self.drop_empty();
        self.length += piece.len();
        self.gathers = false;
        self.parts.push_back(FilledBuffer::whole(piece));
    }

    /// Free memory after the last bytes, in a part of at most `most` bytes.
    pub fn room(&mut self, spare: &SharedBuffers, most: usize) -> &mut [u8] {
        if !self.gathers || self.parts.back().is_none_or(|part| part.len() >= most) {
            self.parts.push_back(FilledBuffer::new(spare.take()));
            self.gathers = true;
        }
        self.parts.back_mut().map(|part| part.room(most)).unwrap_or_default()
    }

    /// Enters that `length` bytes were written into the [room](Self::room).
    pub fn add(&mut self, length: usize) {
        if let Some(part) = self.parts.back_mut() {
            part.add(length);
            self.length += length;
        }
    }

    /// Removes the first part. `None`: there are no bytes.
    pub fn pop(&mut self) -> Option<FilledBuffer> {
        if self.is_empty() {
            return None;
        }
        let part = self.parts.pop_front()?;
        self.length -= part.len();
        self.gathers &= !self.parts.is_empty();
        Some(part)
    }

    /// Takes the unused buffer of an empty queue, to be used again; an empty `Vec` if bytes wait.
    pub fn rest(&mut self) -> Vec<u8> {
        if !self.is_empty() {
            return Vec::new();
        }
        let part = std::mem::take(self).parts.pop_back();
        part.map(FilledBuffer::into_memory).unwrap_or_default()
    }

    /// Removes the last part if it is empty. Only the last part may be empty, and only until
    /// another follows.
    fn drop_empty(&mut self) {
        if self.parts.back().is_some_and(FilledBuffer::is_empty) {
            self.parts.pop_back();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_and_what_is_gathered_stay_in_order() {
        let (mut queue, spare) = (ByteQueue::default(), SharedBuffers::default());
        let gather = |queue: &mut ByteQueue, byte: u8, length: usize| {
            for _ in 0..length {
                queue.room(&spare, 100)[0] = byte;
                queue.add(1);
            }
        };
        assert!(queue.pop().is_none());
        gather(&mut queue, 1, 3);
        queue.push(vec![2; 5]);
        queue.push(vec![3; 5]);
        gather(&mut queue, 4, 150);
        assert_eq!(queue.len(), 163);
        let parts: Vec<Vec<u8>> =
            std::iter::from_fn(|| queue.pop()).map(|part| part.as_slice().to_vec()).collect();
        assert_eq!(parts, [vec![1; 3], vec![2; 5], vec![3; 5], vec![4; 100], vec![4; 50]]);
        assert!(queue.is_empty());
        // Room that nobody used is no part.
        assert!(!queue.room(&spare, 100).is_empty());
        assert!(queue.pop().is_none());
        queue.push(vec![5]);
        assert_eq!(queue.pop().map(|part| part.len()), Some(1));
        assert!(!queue.room(&spare, 100).is_empty());
        assert!(queue.rest().capacity() > 0 && queue.rest().capacity() == 0);
    }
}
