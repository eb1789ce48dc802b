// angle-text.ts: `unit: dms`: degrees, minutes and seconds in a text, with a hemisphere before or behind them
// or a sign: `N 52 31.0`, `52°31'00.5"N`, `-13 22 40`. And the hemisphere in a text of `unit: ddmm`, such as
// `5231.000N`.

/** Longer texts are no angles. */
const lengthMax = 40

/** Degrees and minutes need a mark or a blank behind them: 0131 could be 1°31' as well as 13°1'. */
const angle =
  /^([NSEW])?\s*([+-])?(\d{1,3}(?:\.\d+)?)(?:(?:\s*[°d:]\s*|\s+)(\d{1,2}(?:\.\d+)?)(?:(?:\s*(['′m:])\s*|\s+)(\d{1,2}(?:\.\d+)?)\s*(["″s]|'')?|\s*['′m])?|\s*[°d])?\s*([NSEW])?$/i

const degreeSteps = 1e9

/** Degrees; NaN for an absent value, an infinity for anything but an angle. A number is in degrees. */
export function degreesFromText(value: unknown): number {
  if (value === undefined || value === null || value === '') return Number.NaN
  if (typeof value === 'number') return value
  if (typeof value !== 'string' || value.length > lengthMax) return Number.POSITIVE_INFINITY
  const parts = angle.exec(value.trim()) ?? []
  const [, before, sign, degrees, minutes = '0', minuteMark, seconds = '0', secondMark, last] = parts
  // An s behind seconds is their mark in 33d52m10s, and the hemisphere in 33 52 10 S.
  const isHemisphere = secondMark?.toLowerCase() === 's' && minuteMark?.toLowerCase() !== 'm'
  if (isHemisphere && last !== undefined) return Number.POSITIVE_INFINITY
  // In 33d52m10S it may be either.
  if (secondMark === 'S' && before === undefined && last === undefined && !isHemisphere)
    return Number.POSITIVE_INFINITY
  const behind = isHemisphere ? secondMark : last
  const letter = (before ?? behind)?.toUpperCase()
  // Two hemispheres, a sign beside one, or a part behind a fraction: it is not known what is meant.
  const isTwice = before !== undefined && behind !== undefined
  const isSigned = letter !== undefined && sign !== undefined
  if (degrees === undefined || isTwice || isSigned) return Number.POSITIVE_INFINITY
  if (Number(minutes) >= 60 || Number(seconds) >= 60) return Number.POSITIVE_INFINITY
  const isBroken = (degrees.includes('.') && minutes !== '0') || (minutes.includes('.') && seconds !== '0')
  if (isBroken) return Number.POSITIVE_INFINITY
  const magnitude = Number(degrees) + Number(minutes) / 60 + Number(seconds) / 3600
  const rounded = Math.round(magnitude * degreeSteps) / degreeSteps
  return sign === '-' || letter === 'S' || letter === 'W' ? -rounded : rounded
}

const minutesAndHemisphere = /^(?:([NSEW]) ?)?(\d{3,5}(?:\.\d+)?)(?: ?,? ?([NSEW]))?$/i

/** `6751.3425 N` as the decimal text with its sign; every other value as it is. */
export function minutesFromText(value: unknown): unknown {
  if (typeof value !== 'string' || value.length > lengthMax) return value
  const [, before, minutes, behind] = minutesAndHemisphere.exec(value.trim()) ?? []
  const letter = (before ?? behind)?.toUpperCase()
  if (minutes === undefined || letter === undefined || (before !== undefined && behind !== undefined))
    return value
  return letter === 'S' || letter === 'W' ? `-${minutes}` : minutes
}
