// key-units.ts: the unit that a key names: `odometer_m`, `speedKmh`, `speed_kn`, `lat_e7`; or the one beside
// a value: `speed: { value: 54, unit: mph }`.

import { unitOption } from '../mapping/mapping.ts'

/** Words that are units at the end of a key only, or no units of a payload. */
const ofKeys: Readonly<Record<string, string>> = {
  kmph: 'km/h',
  mps: 'm/s',
  cms: 'cm/s',
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
  if (typeof text !== 'string') return null
  return Object.entries(ofKeys).find(([word]) => word === text.toLowerCase())?.[1] ?? unitOption(text)
}
