#!/usr/bin/env bash
# What the class background does to the kernel's TCP, and to its own kind, on emulated lines of 2, 10, 100 and 300 Mbit/s: requests beside
# one and eight transfers, by `byway send` and through gateways, and then two hosts' transfers on one line. Every cell says by itself whether
# the machine was too busy to be believed.
#
#   cargo build --profile dist && sudo crates/byway-cli/benches/background.sh target/dist/byway [REQUESTS [AGAINST]]
#
# 300 requests take 45 minutes. AGAINST is a list as `byway lab harm` takes it: cubic,byway,gateways. Needs root, ip, nft, iperf3 and
# /dev/net/tun, and leaves nothing behind.
set -euo pipefail
byway=$(realpath "${1:?the byway program}")
requests=${2:-300} against=${3:-byway,gateways}

# Mbit/s, round trip in ms, packets of queue
while read -r rate rtt queue; do
    # A bound that is missed is shown, and the next line is measured all the same.
    "$byway" lab harm --rate "$rate" --rtt "$rtt" --queue "$queue" --requests "$requests" --against "$against" --bulk 1,8 || true
done <<END
2 30 50
10 20 50
100 20 50
300 20 150
END
"$byway" lab run background-fair --emulate
