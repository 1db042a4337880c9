//! Streams for tasks, under tokio.

use crate::common::{bytes, config};
use byway::{Endpoint, StreamError};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

#[tokio::test(flavor = "current_thread")]
async fn tasks_on_one_thread_move_much_both_ways_and_many_streams() {
    let listener = Endpoint::listen(config()).unwrap();
    let ticket = listener.ticket();
    let server = tokio::spawn(async move {
        let peer = listener.accept_async().await.unwrap();
        for _ in 0..51 {
            let mut stream = peer.accept_stream_async().await.unwrap();
            tokio::spawn(async move {
                let mut all = Vec::new();
                stream.read_to_end(&mut all).await.unwrap();
                stream.write_all(&all).await.unwrap();
                stream.finish_async().await.unwrap();
            });
        }
        peer
    });
    let peer = byway::connect_async(&ticket, config()).await.unwrap();
    let mut echoes = Vec::new();
    for number in 0..51 {
        let mut stream = peer.open_stream_async().await.unwrap();
        echoes.push(tokio::spawn(async move {
            let sent = bytes(number, if number == 0 { 8 << 20 } else { 1000 });
            stream.write_all(&sent).await.unwrap();
            AsyncWriteExtShutdown::end(&mut stream).await;
            let mut read = Vec::new();
            stream.read_to_end(&mut read).await.unwrap();
            assert!(read == sent);
        }));
    }
    for echo in echoes {
        echo.await.unwrap();
    }
    let far = server.await.unwrap();
    peer.send_datagram(b"fast").unwrap();
    assert_eq!(far.receive_datagram_async().await.unwrap(), b"fast");
    peer.close_async().await.unwrap();
    assert!(far.accept_stream_async().await.is_err());
}

/// The half-close of tokio's trait, which a method of the stream's own hides.
struct AsyncWriteExtShutdown;

impl AsyncWriteExtShutdown {
    async fn end(stream: &mut byway::Stream) {
        tokio::io::AsyncWriteExt::shutdown(stream).await.unwrap();
    }
}

#[tokio::test(flavor = "current_thread")]
async fn a_task_that_writes_waits_for_who_reads_and_hears_of_a_reset() {
    let listener = Endpoint::listen(config()).unwrap();
    let near = byway::connect_async(&listener.ticket(), config()).await.unwrap();
    let far = listener.accept_async().await.unwrap();
    let (_receiving, mut sending) = near.open_stream_async().await.unwrap().split();
    let writer = tokio::spawn(async move {
        let piece = [7; 100_000];
        loop {
            if let Err(error) = sending.write_all(&piece).await {
                return error;
            }
        }
    });
    let mut theirs = far.accept_stream_async().await.unwrap();
    theirs.read_exact(&mut vec![0; 3 << 20]).await.unwrap();
    tokio::time::sleep(std::time::Duration::from_millis(100)).await;
    assert!(!writer.is_finished());
    theirs.reset(8);
    let error = writer.await.unwrap();
    assert_eq!(StreamError::of(&error), Some(&StreamError::Stopped(8)));
}
