// zlib.ts: node:zlib without its thread pool: the result comes a moment later in virtual time.

import * as real from 'node:zlib'
import { machine } from '../machine/current.ts'

export * from 'node:zlib'

type Done = (error: Error | null, result: Buffer) => void

export const gzip = ((bytes: Buffer, ...rest: unknown[]) => {
  const done = rest.at(-1) as Done
  const result = real.gzipSync(bytes)
  machine().kernel.schedule(1, () => done(null, result))
}) as unknown as typeof real.gzip

const all = { ...real, gzip }
export default all
export { all as 'module.exports' }
