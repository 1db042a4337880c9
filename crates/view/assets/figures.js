// Numbers as a person reads them, in the words of `byway status`, and figures of ten minutes.

const scaled = (value, base, units) => {
  let unit = 0;
  // What would be rounded up to the next unit is shown in it.
  while (value >= base - 0.5 && unit < units.length - 1) {
    value /= base;
    unit += 1;
  }
  const digits = value < 9.995 ? 2 : value < 99.95 ? 1 : 0;
  return `${value.toFixed(digits)} ${units[unit]}`;
};

export const rate = (bps) => scaled(Math.max(bps, 0), 1000, ["bit/s", "kbit/s", "Mbit/s", "Gbit/s", "Tbit/s"]);

export const bytes = (count) =>
  count < 1024 ? `${count} B` : scaled(count, 1024, ["B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"]);

export const span = (seconds) => {
  const two = (number) => String(Math.floor(number)).padStart(2, "0");
  // A clock that was set back gives less than nothing.
  const passed = Math.max(seconds, 0);
  const whole = Math.round(passed);
  if (passed < 59.95) return `${passed.toFixed(passed < 9.995 ? 1 : 0)} s`;
  if (whole < 3600) return `${Math.floor(whole / 60)}m ${two(whole % 60)}s`;
  if (whole < 86400) return `${Math.floor(whole / 3600)}h ${two((whole % 3600) / 60)}m`;
  return `${Math.floor(whole / 86400)}d ${two((whole % 86400) / 3600)}h`;
};

export const millis = (time) => `${time < 9.95 ? time.toFixed(1) : Math.round(time)} ms`;

// Of 10,000 packets, how many.
export const share = (parts) => `${parts < 1000 ? (parts / 100).toFixed(parts < 100 ? 2 : 1) : Math.round(parts / 100)} %`;

// The beginning of a key, which tells senders apart.
export const shortKey = (key) => (key.startsWith("byway-key-") && key.length > 18 ? `${key.slice(0, 18)}…` : key);

// One figure for each of the last 600 seconds, the newest last. `null` is a gap.
export class Series {
  static length = 600;

  constructor(second = 0, values = []) {
    this.newest = second;
    this.values = values.slice(-Series.length);
  }

  push(second, value) {
    const known = value ?? null;
    const passed = second - this.newest;
    if (this.values.length === 0 || passed > Series.length) this.values = [known];
    else if (passed <= 0) this.values[this.values.length - 1] = known;
    else {
      // A figure holds until the next look; after a pause nothing is known of the time between.
      for (let gap = 1; gap < passed; gap += 1) this.values.push(passed <= 10 ? known : null);
      this.values.push(known);
      this.values.splice(0, this.values.length - Series.length);
    }
    this.newest = Math.max(second, this.newest);
  }

  get max() {
    return this.values.reduce((most, value) => Math.max(most, value ?? 0), 0);
  }

  get isEmpty() {
    return this.values.every((value) => value === null);
  }
}

// A round number that is not below a figure, for the top of a chart.
export const roundUp = (value) => {
  if (value <= 0) return 1;
  const power = 10 ** Math.floor(Math.log10(value));
  return [1, 2, 5, 10].map((step) => step * power).find((top) => top >= value * 0.999) ?? value;
};
