// quantity.ts: durations and sizes as people write them in a config file: `30s`, `64MiB`.

const durationUnits: Record<string, number> = { ms: 1, s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000 }

const sizeUnits: Record<string, number> = {
  B: 1,
  KiB: 1024,
  MiB: 1024 ** 2,
  GiB: 1024 ** 3,
  TiB: 1024 ** 4,
  kB: 1000,
  MB: 1000 ** 2,
  GB: 1000 ** 3,
  TB: 1000 ** 4,
}

/** Milliseconds of `30s`, `5m`, `1.5h`, `250ms`; undefined where the text is not a duration. */
export function parseDuration(text: string): number | undefined {
  return parse(text, durationUnits)
}

/** Bytes of `64MiB`, `20GiB`, `512B`; undefined where the text is not a size. */
export function parseSize(text: string): number | undefined {
  const bytes = parse(text, sizeUnits)
  return bytes === undefined ? undefined : Math.round(bytes)
}

function parse(text: string, units: Record<string, number>): number | undefined {
  const match = /^\s*(\d+(?:\.\d+)?)\s*([A-Za-z]+)\s*$/.exec(text)
  if (!match?.[1] || !match[2] || !Object.hasOwn(units, match[2])) return undefined
  return Number(match[1]) * (units[match[2]] ?? Number.NaN)
}

const durationSteps = [
  ['d', 86_400],
  ['h', 3600],
  ['min', 60],
  ['s', 1],
] as const

/** `90000` as `1 min 30 s`, for people; at most two units. */
export function formatDuration(durationMs: number): string {
  if (!Number.isFinite(durationMs)) return 'unknown'
  const wholeMs = Math.round(durationMs)
  if (wholeMs < 0) return `-${formatDuration(-wholeMs)}`
  if (wholeMs < 1000) return `${wholeMs} ms`
  let restS = Math.round(durationMs / 1000)
  const words: string[] = []
  for (const [unit, seconds] of durationSteps) {
    const whole = Math.floor(restS / seconds)
    restS -= whole * seconds
    if (whole > 0 && words.length < 2) words.push(`${whole} ${unit}`)
  }
  return words.join(' ')
}

/** A clock that is ahead by less is not worth a word: two machines, or a clock that was set. */
const aheadMaxMs = 5000

/** `3 min ago`, `just now`; `in 3 min` for a time that is clearly ahead. */
export function formatAgo(agoMs: number): string {
  if (!Number.isFinite(agoMs)) return 'at an unknown time'
  if (agoMs < -aheadMaxMs) return `in ${formatDuration(-agoMs)}`
  return agoMs < 1000 ? 'just now' : `${formatDuration(agoMs)} ago`
}

/** `1 source`, `2 sources`; `many` where the plural is not made with an s. */
export function plural(count: number, one: string, many = `${one}s`): string {
  return `${count} ${count === 1 ? one : many}`
}

/** `67108864` as `64.0 MiB`, for people. */
export function formatSize(bytes: number): string {
  const units = ['B', 'KiB', 'MiB', 'GiB', 'TiB'] as const
  let size = bytes
  let unit = 0
  while (size >= 1024 && unit < units.length - 1) {
    size /= 1024
    unit += 1
  }
  return unit === 0 ? `${size} B` : `${size.toFixed(1)} ${units[unit]}`
}
