// schema.ts: the pieces of zod that every section of the config is made of.
//
// A section's schema is the only place where an option is declared: parsing, error texts, the reference
// and the JSON Schema come from it. `.describe()` says what it is, when it bites, and what happens then.

import { z } from 'zod'
import { parseDuration, parseSize } from './quantity.ts'
import { Secret } from './secret.ts'

/** A duration such as `30s`; parses to milliseconds. */
export function duration(range: { minMs: number; maxMs: number }) {
  return z
    .string()
    .meta({ format: 'duration', examples: ['30s', '5m'] })
    .transform((text, context) => {
      const ms = parseDuration(text)
      if (ms === undefined)
        return refuse(context, `must be a duration such as 250ms, 30s, 5m or 1h, found "${text}"`)
      if (ms < range.minMs || ms > range.maxMs)
        return refuse(context, `must be ${range.minMs} to ${range.maxMs} ms, found ${ms} ms`)
      return ms
    })
}

/** A size such as `64MiB`; parses to bytes. */
export function size(range: { minBytes: number; maxBytes: number }) {
  return z
    .string()
    .meta({ format: 'size', examples: ['64MiB', '20GiB'] })
    .transform((text, context) => {
      const bytes = parseSize(text)
      if (bytes === undefined)
        return refuse(context, `must be a size such as 512KiB, 64MiB or 20GiB, found "${text}"`)
      if (bytes < range.minBytes || bytes > range.maxBytes)
        return refuse(context, `must be ${range.minBytes} to ${range.maxBytes} bytes, found ${bytes} bytes`)
      return bytes
    })
}

/** A secret: by the time it is checked, `${env:NAME}` and `${file:PATH}` have been put in. */
export function secret() {
  return z
    .string()
    .min(1)
    .meta({ format: 'secret' })
    .transform((value) => new Secret(value))
}

function refuse(context: z.RefinementCtx, message: string): never {
  context.addIssue({ code: 'custom', message })
  return z.NEVER
}
