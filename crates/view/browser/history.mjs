// A history of 30 days, as processes write it.
const now = Math.floor(Date.now() / 1000);
const entries = [];
for (let day = 29; day >= 0; day -= 1) {
  const at = now - day * 86400 - 7200;
  const gib = 1 + ((day * 7) % 11) * 0.8;
  const seconds = gib * 900;
  const bytes = Math.floor(gib * 2 ** 30);
  if (day === 12) entries.push({ at, verb: "send", peer: "nas", result: { exit: 5, error: "the receiver does not answer at any address" } });
  else entries.push({ at, verb: "send", peer: "nas", result: { exit: 0, bytes, seconds, goodput_bps: (bytes * 8) / seconds } });
  if (day % 5 === 3) {
    const result = { exit: 0, bytes: 3e8, seconds: 61.2, goodput_bps: 39e6, from: "byway-key-2x4kq7hmzzpab7uwq4lfnrz2", name: "photos" };
    entries.push({ at: at + 3600, verb: "recv", result });
  }
}
for (const entry of entries) console.log(JSON.stringify(entry));
