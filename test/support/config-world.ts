// config-world.ts: a small config schema with every kind of option, read from a text.

import { z } from 'zod'
import { duration, secret, size } from '../../src/std/schema.ts'
import type { ConfigProblem } from '../../src/std/config-problem.ts'
import { readText } from '../../src/config/config-reader.ts'

const schema = z.strictObject({
  delivery: z
    .strictObject({
      max_in_flight: z.int().min(1).max(64).default(4).describe('Batches sent at once. More text.'),
      timeout: duration({ minMs: 100, maxMs: 60_000 }).prefault('30s').describe('Per request.'),
      size: size({ minBytes: 1024, maxBytes: 1024 ** 2 }).prefault('64KiB'),
      verify: z.boolean().default(true),
      key: secret().optional(),
      credentials: z
        .discriminatedUnion('source', [
          z.strictObject({ source: z.literal('environment') }),
          z.strictObject({ source: z.literal('keys'), id: z.string() }),
        ])
        .prefault({ source: 'environment' }),
      errors: z
        .record(z.string(), z.union([z.array(duration({ minMs: 0, maxMs: 1e9 })), z.literal('delivered')]))
        .prefault({}),
    })
    .prefault({}),
  sources: z
    .array(
      z.strictObject({
        name: z.string().min(1),
        topic: z.string().min(1).describe('Which messages it reads.'),
        unknown: z.enum(['accept', 'quarantine', 'ignore']).default('accept'),
        path: z
          .union([z.string(), z.strictObject({ path: z.string(), unit: z.string().optional() })])
          .optional(),
      }),
    )
    .min(1),
})

type Extra = {
  env?: Record<string, string>
  files?: Record<string, string>
  check?: (written: unknown) => readonly ConfigProblem[]
}

async function read(text: string, { env = {}, files = {}, check = () => [] }: Extra = {}) {
  const readFile = (path: string) => {
    const content = files[path]
    if (content !== undefined) return Promise.resolve(content)
    return Promise.reject(Object.assign(new Error(`ENOENT: open '${path}'`), { code: 'ENOENT' }))
  }
  return readText(text, schema, { env, readText: readFile }, { check })
}

export async function problemsOf(text: string, extra?: Extra): Promise<string[]> {
  const result = await read(text, extra)
  if (result.kind === 'config') return []
  return result.problems.map(({ line, column, message }) => `${line}:${column} ${message}`)
}

export async function configOf(text: string, extra?: Extra) {
  const result = await read(text, extra)
  if (result.kind === 'problems') throw new Error(JSON.stringify(result.problems, null, 1))
  return result.config
}

export const fine = 'sources: [{ name: a, topic: t }]\n'
