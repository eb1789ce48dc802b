// level-files.ts: the reader of the files of a database (src/storage/level-files) on the simulated disk, where files of
// LevelDB have no content: what the daemon reads of a store that it has not opened.

import { Database } from '../machine/database.ts'
import { machine } from '../machine/current.ts'

export async function openLevelFiles(path: string): Promise<{
  path: string
  get(key: Buffer): Promise<Buffer | undefined>
  close(): Promise<void>
}> {
  const { disk } = machine()
  const found = await disk.later('open', path, () => disk.attachment(path))
  return {
    path,
    get: (key) =>
      disk.later('read', path, () => (found instanceof Database ? found.readable(key) : undefined)),
    close: () => Promise.resolve(),
  }
}
