// schema.ts: the zod types that all config sections share.
//
// An option is declared once, in the schema of its section. Parsing, error texts, the reference and the JSON
// Schema come from it. `.describe()` says what the option is, its unit, and what happens at its limit.

import { z } from 'zod'
import { formatDuration, formatSize, parseDuration, parseSize } from './quantity.ts'
import { Secret } from './secret.ts'
import { pemProblem, type PemKind } from './tls/pem.ts'

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
        return refuse(
          context,
          `must be ${formatDuration(range.minMs)} to ${formatDuration(range.maxMs)}, found ${formatDuration(ms)}`,
        )
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
        return refuse(
          context,
          `must be ${formatSize(range.minBytes)} to ${formatSize(range.maxBytes)}, found ${formatSize(bytes)}`,
        )
      return bytes
    })
}

/** A secret. `${env:NAME}` and `${file:PATH}` are replaced before this check. */
export function secret() {
  return (
    z
      .string()
      // An empty one is no Secret, so rules about the whole section must not see it.
      .min(1, { abort: true })
      .meta({ format: 'secret' })
      .transform((value) => new Secret(value))
  )
}

/** The path of a file or directory, which no text of a file may become. */
export function filePath() {
  return z.string().min(1).meta({ format: 'path' })
}

/** PEM text, or the path of its file, which src/config has read before this check. */
export function pem(kind: 'certificate' | 'crl') {
  return pemText('pem', kind)
}

/** A private key, as `pem`. Only as a path, or from the environment: it must not be in the config itself. */
export function pemKey() {
  return pemText('pem-key', 'key').transform((value) => new Secret(value))
}

function pemText(format: 'pem' | 'pem-key', kind: PemKind) {
  return (
    z
      .string()
      .meta({ format })
      // What belongs together is checked only where each part is one.
      .refine((text) => pemProblem(text, kind) === null, {
        abort: true,
        error: ({ input }) => pemProblem(String(input), kind) ?? '',
      })
  )
}

function refuse(context: z.RefinementCtx, message: string): never {
  context.addIssue({ code: 'custom', message })
  return z.NEVER
}
