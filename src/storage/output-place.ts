// output-place.ts: the empty directory that a person names for the files of a command. Only the directory
// itself is created: a path whose parent is missing is misspelt, or its disk is not mounted.

import { mkdir } from 'node:fs/promises'
import { codeOf } from '../std/gateway-error.ts'

/** Creates the directory unless it exists. Rejects where its parent does not exist. */
export async function makeOutputDirectory(path: string): Promise<void> {
  await mkdir(path).catch((error: unknown) => {
    if (codeOf(error) !== 'EEXIST') throw error
  })
}
