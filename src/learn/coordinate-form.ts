// coordinate-form.ts: how the numbers of a position are written: degrees, integers of a part of a degree, or
// degrees and minutes as NMEA writes them (4807.038 is 48 degrees and 7.038 minutes).

export type CoordinateForm =
  | { kind: 'degrees'; options: object }
  | { kind: 'scaled'; options: object; note: string }
  /** No option of a source reads it. */
  | { kind: 'unusable'; note: string }

const scales = [
  // The largest part first: a position then has the most digits.
  { most: 90e6, options: { unit: '1e-7deg' }, name: 'ten-millionths of a degree (1e-7deg)' },
  { most: 90e5, options: { scale: 0.000001 }, name: 'millionths of a degree' },
  { most: 90e4, options: { scale: 0.00001 }, name: 'hundred-thousandths of a degree' },
] as const

export function coordinateForm(
  latitudes: readonly unknown[],
  longitudes: readonly unknown[],
): CoordinateForm {
  const [north, east] = [numbersIn(latitudes), numbersIn(longitudes)]
  const [northMost, eastMost] = [largest(north), largest(east)]
  if (mostlyWithin(north, 90) && mostlyWithin(east, 180)) return { kind: 'degrees', options: {} }
  const all = [...north, ...east]
  if (isMinutes(north, 9000) && isMinutes(east, 18_000) && !all.every(Number.isInteger))
    return {
      kind: 'scaled',
      options: { unit: 'ddmm' },
      note:
        'The position is written in degrees and minutes as in NMEA 0183: 4807.038 is 48 degrees and 7.038 minutes ' +
        '(`unit: ddmm`). Compare the place with a map.',
    }
  if (!all.every(Number.isInteger))
    return { kind: 'unusable', note: 'The position is out of the range of degrees.' }
  for (const { most, options, name } of scales)
    if (northMost > most || eastMost > most * 2)
      return {
        kind: 'scaled',
        options,
        note: `The position is a scaled integer; ${name} is a guess. Compare the place with a map.`,
      }
  return { kind: 'unusable', note: 'The position is a scaled integer of an unknown scale.' }
}

function numbersIn(values: readonly unknown[]): number[] {
  return values
    .filter((value) => typeof value === 'number' || (typeof value === 'string' && value.trim() !== ''))
    .map(Number)
    .filter(Number.isFinite)
}

/** A single wrong value is a fault of the device, and not another form. */
function mostlyWithin(values: readonly number[], most: number): boolean {
  return values.filter((value) => Math.abs(value) <= most).length * 2 >= values.length
}

function largest(values: readonly number[]): number {
  return values.reduce((most, value) => Math.max(most, Math.abs(value)), 0)
}

/** Degrees and minutes: 4807.038. */
function isMinutes(values: readonly number[], most: number): boolean {
  return values.length > 0 && values.every((value) => Math.abs(value) <= most && Math.abs(value) % 100 < 60)
}
