// key-units.ts: the unit that a key names: `odometer_m`, `speedKmh`, `speed_kn`, `lat_e7`; or the one beside
// a value: `speed: { value: 54, unit: mph }`.

const words: Readonly<Record<string, string>> = {
  kmh: 'km/h',
  kph: 'km/h',
  kmph: 'km/h',
  'km/h': 'km/h',
  mph: 'mph',
  kn: 'knots',
  kt: 'knots',
  kts: 'knots',
  knot: 'knots',
  knots: 'knots',
  mps: 'm/s',
  'm/s': 'm/s',
  cms: 'cm/s',
  'cm/s': 'cm/s',
  m: 'm',
  meter: 'm',
  meters: 'm',
  metre: 'm',
  metres: 'm',
  km: 'km',
  kilometers: 'km',
  kilometres: 'km',
  kilometer: 'km',
  mi: 'mi',
  mile: 'mi',
  miles: 'mi',
  h: 'h',
  hr: 'h',
  hrs: 'h',
  hour: 'h',
  hours: 'h',
  min: 'min',
  mins: 'min',
  minutes: 'min',
  s: 's',
  sec: 's',
  secs: 's',
  seconds: 's',
  ms: 'ms',
  deg: 'deg',
  degrees: 'deg',
  e7: 'e7',
  e6: 'e6',
  utc: 'utc',
}

/** The key without its unit, and the unit; null where the last word of the key is none. */
export function splitUnit(key: string): { name: string; unit: string | null } {
  // `speed_km_h` and `speed(km/h)` are one word at the end.
  const text = key.replace(/[\s([]*km[_/ ]?h[)\]]?$/i, '_kmh').replace(/[\s([]*m[_/ ]s[)\]]?$/i, '_mps')
  const parts = text
    .replace(/([a-z0-9])([A-Z])/g, '$1_$2')
    .split(/[^A-Za-z0-9/]+/)
    .filter((part) => part !== '')
  const unit = unitWord(parts.at(-1))
  return unit === null ? { name: key, unit } : { name: parts.slice(0, -1).join('_'), unit }
}

/** The unit that a text means. */
export function unitWord(text: unknown): string | null {
  return typeof text === 'string' && Object.hasOwn(words, text.toLowerCase())
    ? (words[text.toLowerCase()] ?? null)
    : null
}
