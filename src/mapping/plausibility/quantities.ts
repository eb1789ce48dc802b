// quantities.ts: the quantities whose values have bounds, and which of them a field of a payload holds.
//
// The interface names only two signals (ingestion-api.md 2.5). All others, and extra fields, have a name and
// a unit of the config. The unit decides what is measured, the words of the name which of several
// quantities of that kind it is. A field that neither tells is not judged: `quantity` of the field names it.

/** `unit`: that of the bounds. */
type QuantityDefinition = { unit: Unit; min: number; max: number; what: string }

export const quantities = {
  speed: { unit: 'KILOMETERS_PER_HOUR', min: 0, max: 250, what: 'Speed, in km/h' },
  heading: { unit: 'DEGREES', min: 0, max: 360, what: 'Heading, in degrees' },
  odometer: {
    unit: 'KILOMETERS',
    min: 0,
    max: 10_000_000,
    what: 'Distance that a vehicle has driven since it was built, in km',
  },
  distance: { unit: 'KILOMETERS', min: 0, max: 10_000_000, what: 'Other distances, in km' },
  engine_hours: {
    unit: 'HOURS',
    min: 0,
    max: 200_000,
    what: 'Time that an engine has run since it was built, in hours',
  },
  duration: { unit: 'HOURS', min: 0, max: 200_000, what: 'Other durations, in hours' },
  fuel_used: {
    unit: 'LITERS',
    min: 0,
    max: 10_000_000,
    what: 'Fuel that a vehicle has used since it was built, in litres',
  },
  battery: { unit: 'PERCENT', min: 0, max: 100, what: 'Charge of a battery, in percent' },
  fuel: { unit: 'PERCENT', min: 0, max: 100, what: 'Level of a fuel tank, in percent' },
  temperature: {
    unit: 'CELSIUS',
    min: -60,
    max: 150,
    what: 'Temperature of cargo, air and coolant, in degrees Celsius',
  },
  voltage: { unit: 'VOLTS', min: 0, max: 1000, what: 'Voltage, in volts' },
  altitude: { unit: 'METERS', min: -500, max: 10_000, what: 'Altitude, in metres' },
} as const satisfies Record<string, QuantityDefinition>

export type Quantity = keyof typeof quantities

export const quantityNames = Object.keys(quantities) as [Quantity, ...Quantity[]]

type Kind = 'speed' | 'angle' | 'length' | 'time' | 'percent' | 'temperature' | 'voltage' | 'volume'

/**
 * A value of the unit x `factor` + `offset` is a value of the first unit of its kind. `words`: other
 * spellings, without `_`, blanks and the plural. `option`: the unit as a source names it.
 */
type UnitDefinition = { kind: Kind; factor: number; offset?: number; words: string; option?: string }

const units = {
  KILOMETERS_PER_HOUR: { kind: 'speed', factor: 1, words: 'KM/H KMH KPH', option: 'km/h' },
  MILES_PER_HOUR: { kind: 'speed', factor: 1.609344, words: 'MPH', option: 'mph' },
  METERS_PER_SECOND: { kind: 'speed', factor: 3.6, words: 'M/S', option: 'm/s' },
  CENTIMETERS_PER_SECOND: { kind: 'speed', factor: 0.036, words: 'CM/S', option: 'cm/s' },
  FEET_PER_SECOND: { kind: 'speed', factor: 1.097_28, words: 'FT/S' },
  KNOTS: { kind: 'speed', factor: 1.852, words: 'KT KN', option: 'knots' },
  DEGREES: { kind: 'angle', factor: 1, words: 'DEG', option: 'deg' },
  KILOMETERS: { kind: 'length', factor: 1, words: 'KM KILOMETRE', option: 'km' },
  METERS: { kind: 'length', factor: 0.001, words: 'M METRE', option: 'm' },
  CENTIMETERS: { kind: 'length', factor: 0.000_01, words: 'CM' },
  MILES: { kind: 'length', factor: 1.609344, words: 'MI', option: 'mi' },
  NAUTICAL_MILES: { kind: 'length', factor: 1.852, words: 'NMI' },
  YARDS: { kind: 'length', factor: 0.000_914_4, words: 'YD' },
  FEET: { kind: 'length', factor: 0.000_304_8, words: 'FT' },
  DAYS: { kind: 'time', factor: 24, words: 'D' },
  HOURS: { kind: 'time', factor: 1, words: 'H HR', option: 'h' },
  MINUTES: { kind: 'time', factor: 1 / 60, words: 'MIN', option: 'min' },
  SECONDS: { kind: 'time', factor: 1 / 3600, words: 'S SEC', option: 's' },
  MILLISECONDS: { kind: 'time', factor: 1 / 3_600_000, words: 'MS', option: 'ms' },
  PERCENT: { kind: 'percent', factor: 1, words: '% PERCENTAGE' },
  CELSIUS: { kind: 'temperature', factor: 1, words: 'C °C DEGREESCELSIUS DEGREECELSIUS' },
  FAHRENHEIT: {
    kind: 'temperature',
    factor: 5 / 9,
    offset: -160 / 9,
    words: 'F °F DEGREESFAHRENHEIT DEGREEFAHRENHEIT',
  },
  KELVIN: { kind: 'temperature', factor: 1, offset: -273.15, words: 'K' },
  VOLTS: { kind: 'voltage', factor: 1, words: 'V' },
  MILLIVOLTS: { kind: 'voltage', factor: 0.001, words: 'MV' },
  LITERS: { kind: 'volume', factor: 1, words: 'L LITRE' },
  MILLILITERS: { kind: 'volume', factor: 0.001, words: 'ML MILLILITRE' },
} as const satisfies Record<string, UnitDefinition>

export type Unit = keyof typeof units

const spellings = new Map(
  Object.entries<UnitDefinition>(units).flatMap(([unit, { words }]) =>
    [foldedUnit(unit), ...words.split(' ')].map((word) => [word, unit as Unit] as const),
  ),
)

function foldedUnit(text: string): string {
  const folded = text.toUpperCase().replaceAll(/[_ ]/g, '')
  return folded.length > 2 && /(?<!\/)S$/.test(folded) && folded !== 'CELSIUS' ? folded.slice(0, -1) : folded
}

export function unitOf(text: string | undefined): Unit | undefined {
  return text === undefined ? undefined : spellings.get(foldedUnit(text))
}

/** As a source names it; null for a unit that no field of a source has. */
export function unitOption(text: string): string | null {
  const unit = unitOf(text)
  return unit === undefined ? null : ((units[unit] as UnitDefinition).option ?? null)
}

/** A bound in `from` as one in `to`; both are of one kind. */
export function inUnit(bound: number, from: Unit, to: Unit): number {
  if (from === to) return bound
  const own: UnitDefinition = units[from]
  const other: UnitDefinition = units[to]
  const value = (bound * own.factor + (own.offset ?? 0) - (other.offset ?? 0)) / other.factor
  // The error of the float must not put a value that equals the bound outside.
  return Number(value.toPrecision(12))
}

/** Whether values of `unit` can be compared with the bounds of the quantity. */
export function measures(quantity: Quantity, unit: Unit): boolean {
  return units[quantities[quantity].unit].kind === units[unit].kind
}

/** Parts of machines that are hotter than the bounds for cargo, air and coolant allow. */
const hotParts = ['EXHAUST', 'EGT', 'TURBO', 'BRAKE', 'DPF', 'SCR', 'CATALYST']

const spent = ['USED', 'CONSUMED', 'CONSUMPTION']

/** Null for a field that neither its name nor its unit explains. */
export function quantityOf(name: string, unit: Unit | undefined): Quantity | null {
  const words = new Set(wordsOf(name))
  const has = (...some: readonly string[]) => some.some((word) => words.has(word))
  const kind = unit === undefined ? kindOf(has) : units[unit].kind
  switch (kind) {
    case 'speed':
      return has('WIND', 'FAN') ? null : 'speed'
    case 'angle':
      return has('HEADING', 'COURSE', 'BEARING', 'DIRECTION') ? 'heading' : null
    case 'length':
      if (has('ALTITUDE', 'ALT', 'ELEVATION', 'HEIGHT')) return 'altitude'
      return has('ODOMETER', 'MILEAGE') && !has('TRIP') ? 'odometer' : 'distance'
    case 'time':
      return has('ENGINE') && !has('TRIP') ? 'engine_hours' : 'duration'
    case 'percent':
      if (has('FUEL')) return 'fuel'
      return has('BATTERY', 'SOC') ? 'battery' : null
    case 'temperature':
      return has(...hotParts) ? null : 'temperature'
    case 'voltage':
      return 'voltage'
    case 'volume':
      return has('FUEL') && has('TOTAL', 'LIFETIME') && has(...spent) && !has('TRIP') ? 'fuel_used' : null
    case null:
    default:
      return null
  }
}

/** What a name without a unit says. Units that are usual without a word about them only. */
function kindOf(has: (...some: readonly string[]) => boolean): Kind | null {
  if (has('TEMPERATURE', 'TEMP')) return 'temperature'
  if (has('HEADING', 'COURSE', 'BEARING')) return 'angle'
  if (has('BATTERY', 'SOC', 'FUEL') && has('LEVEL', 'PERCENT', 'PCT', 'SOC', 'CHARGE')) return 'percent'
  if (has('ALTITUDE', 'ELEVATION')) return 'length'
  return has('VOLTAGE') ? 'voltage' : null
}

/** `gps.cargoTemperature_2` has the words GPS, CARGO, TEMPERATURE and 2. */
export function wordsOf(name: string): string[] {
  return name
    .replaceAll(/([a-z\d])([A-Z])/g, '$1 $2')
    .toUpperCase()
    .split(/[^A-Z\d]+/)
}
