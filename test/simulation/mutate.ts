// mutate.ts: loads the daemon with one mistake (mutations.ts).

import { registerHooks } from 'node:module'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import type { Mutation } from './mutations.ts'

/** Throws where the place is not there exactly once. A file that is never loaded ends the process with status 3. */
export function mutate({ file, find, replace }: Mutation): void {
  const path = join(import.meta.dirname, '../../src', file)
  const source = readFileSync(path, 'utf8')
  if (source.split(find).length !== 2) throw new Error(`"${find}" is not in ${file} exactly once`)
  const { href } = pathToFileURL(path)
  let isLoaded = false
  registerHooks({
    load(url, context, next) {
      const loaded = next(url, context)
      if (url.replace(/\?.*/, '') !== href) return loaded
      isLoaded = true
      return { ...loaded, source: source.replace(find, () => replace) }
    },
  })
  process.once('exit', () => {
    if (!isLoaded) process.exitCode = 3
  })
}
