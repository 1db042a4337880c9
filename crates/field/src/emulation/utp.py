"""One end of a torrent that travels over libtorrent's µTP alone, which is LEDBAT (RFC 6817) with its target of 100 ms.

`seed FILE ADDRESS PORT TORRENT` makes the torrent; `leech DIRECTORY ADDRESS PORT TORRENT SEEDER PORT` begins when it reads a line.
Both say when they are ready, and a leech then, twice a second, how many bytes it has."""
import json
import os
import sys
import time

import libtorrent

role, path, address, port, torrent = sys.argv[1:6]
session = libtorrent.session({
    "listen_interfaces": f"{address}:{port}",
    "enable_outgoing_tcp": False,
    "enable_incoming_tcp": False,
    "enable_dht": False,
    "enable_lsd": False,
    "enable_upnp": False,
    "enable_natpmp": False,
    "alert_mask": 0,
})
what = libtorrent.add_torrent_params()
if role == "seed":
    files = libtorrent.file_storage()
    libtorrent.add_files(files, path)
    made = libtorrent.create_torrent(files, 1 << 18)
    libtorrent.set_piece_hashes(made, os.path.dirname(path))
    with open(torrent, "wb") as out:
        out.write(libtorrent.bencode(made.generate()))
    what.flags = libtorrent.torrent_flags.seed_mode
    path = os.path.dirname(path)
what.ti = libtorrent.torrent_info(torrent)
what.save_path = path
what.flags &= ~(libtorrent.torrent_flags.auto_managed | libtorrent.torrent_flags.paused)
handle = session.add_torrent(what)
print(json.dumps({"event": "ready"}), flush=True)
if role == "leech":
    sys.stdin.readline()
    handle.connect_peer((sys.argv[6], int(sys.argv[7])))
while True:
    time.sleep(0.5)
    if role == "leech":
        print(json.dumps({"event": "progress", "bytes": handle.status().total_payload_download}), flush=True)
