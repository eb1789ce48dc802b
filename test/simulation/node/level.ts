// level.ts: the packages level and classic-level on the simulated disk: what the daemon calls of them.
//
// Calls end in their order, each after the delay of the disk, and have their effect at that moment: reads among
// themselves, beside the write that runs. With a process that is killed before, there was none, but for the write that
// runs: it may have happened.

import { Database, type WriteOp } from '../machine/database.ts'
import { machine } from '../machine/current.ts'
import type { DiskCall } from '../machine/system-error.ts'

type Range = { gte: Buffer; lt: Buffer; reverse?: boolean; limit?: number }

/** Few, so that a reader crosses the boundary between two pages. */
const pageEntries = 20

export class ClassicLevel {
  private database: Database | null = null
  private readonly path: string
  private readonly life = machine().kernel.life
  private last: Promise<unknown> = Promise.resolve()
  private lastRead: Promise<unknown> = Promise.resolve()

  constructor(path: string) {
    this.path = path
  }

  async open({ createIfMissing = true }: { createIfMissing?: boolean } = {}): Promise<void> {
    try {
      this.database = await this.inTurn('db-open', () => this.opened(createIfMissing))
    } catch (error) {
      const code = error instanceof Error && 'code' in error ? String(error.code) : 'EIO'
      const isOfLevel = code.startsWith('LEVEL_')
      const cause = isOfLevel
        ? error
        : coded('LEVEL_IO_ERROR', `IO error: ${this.path}/LOCK: ${textOf(code)}`)
      throw Object.assign(new Error('Database failed to open'), { code: 'LEVEL_DATABASE_NOT_OPEN', cause })
    }
  }

  private opened(createIfMissing: boolean): Database {
    const { disk, kernel, databases } = machine()
    const { path } = this
    if (disk.faults.isReadOnly) throw Object.assign(new Error('read-only'), { code: 'EROFS' })
    if (!disk.exists(path)) disk.mkdir(path)
    const found = disk.attachment(path)
    if (!(found instanceof Database) && !createIfMissing)
      throw coded(
        'LEVEL_OPEN_FAILED',
        `Invalid argument: ${path}: does not exist (create_if_missing is false)`,
      )
    const database = found instanceof Database ? found : new Database()
    if (database.lockedBy !== null)
      throw coded('LEVEL_LOCKED', `IO error: lock ${path}/LOCK: already held by process`)
    if (database !== found) disk.attach(path, database)
    databases.add(database)
    database.opened(kernel.life)
    const manifest = (number: number) => `MANIFEST-${String(number).padStart(6, '0')}`
    disk.world.write(`${path}/LOCK`, '')
    disk.world.write(`${path}/${manifest(database.manifest)}`, 'manifest')
    disk.world.write(`${path}/CURRENT`, `${manifest(database.manifest)}\n`)
    disk.world.remove(`${path}/${manifest(database.manifest - 1)}`)
    disk.databaseSynced(path)
    return database
  }

  async batch(ops: readonly WriteOp[], { sync = false }: { sync?: boolean } = {}): Promise<void> {
    const database = this.usable()
    // The caller may use its memory again; LevelDB copies as well.
    const copied = ops.map((op): WriteOp =>
      op.type === 'put'
        ? { type: 'put', key: Buffer.from(op.key), value: Buffer.from(op.value) }
        : { type: 'del', key: Buffer.from(op.key) },
    )
    const { runningWrites, disk, random, kernel } = machine()
    if (this.life !== kernel.life) return new Promise<never>(() => undefined)
    const running = { path: this.path, database, ops: copied, sync }
    runningWrites.add(running)
    if (machine().atNextWrite?.(copied) === true) machine().atNextWrite = null
    await this.inTurn('db-write', () => {
      runningWrites.delete(running)
      try {
        disk.strike('db-write', this.path)
      } catch (error) {
        database.failed(copied, random.chance(0.5))
        throw coded('LEVEL_IO_ERROR', `IO error: ${this.path}: ${textOf((error as { code: string }).code)}`)
      }
      database.apply(copied, sync)
      if (sync && disk.exists(this.path)) disk.databaseSynced(this.path)
    })
  }

  get(key: Buffer): Promise<Buffer | undefined> {
    const database = this.usable()
    return this.inTurn('db-read', () => {
      const value = database.get(key.toString('latin1'))
      return value === undefined ? undefined : Buffer.from(value)
    })
  }

  /** Of the moment of this call. */
  iterator({ gte, lt, reverse = false, limit = -1 }: Range) {
    const rest = this.usable().entries(gte.toString('latin1'), lt.toString('latin1'), { reverse, limit })
    return {
      nextv: (size: number) =>
        this.inTurn('db-read', () => {
          const page = rest.splice(0, Math.min(size, pageEntries))
          this.usable().refuseDamaged(page)
          return page
        }),
      close: () => Promise.resolve(),
    }
  }

  compactRange(): Promise<void> {
    this.usable()
    return this.inTurn('db-compact', () => undefined)
  }

  close(): Promise<void> {
    this.last = Promise.all([this.last, this.lastRead])
    return this.inTurn('db-close', () => {
      if (this.database !== null) this.database.lockedBy = null
      this.database = null
    })
  }

  private usable(): Database {
    if (this.database === null) throw coded('LEVEL_DATABASE_NOT_OPEN', 'Database is not open')
    return this.database
  }

  /** After the calls before it; never in a process that ended. */
  private inTurn<T>(call: DiskCall, effect: () => T): Promise<T> {
    const { disk, kernel } = machine()
    if (this.life !== kernel.life) return new Promise<never>(() => undefined)
    const isRead = call === 'db-read'
    const before = isRead ? this.lastRead : this.last
    const done = before.then(() =>
      disk.later(call, this.path, () => {
        if (call !== 'db-write') disk.strike(call, this.path)
        return effect()
      }),
    )
    const ended = done.catch(() => undefined)
    if (isRead) this.lastRead = ended
    else this.last = ended
    return done
  }
}

/** As strerror(3) says it: LevelDB makes its texts of that. */
function textOf(code: string): string {
  const texts: Record<string, string> = {
    EIO: 'Input/output error',
    ENOSPC: 'No space left on device',
    EROFS: 'Read-only file system',
    EMFILE: 'Too many open files',
    EACCES: 'Permission denied',
    ENOENT: 'No such file or directory',
    ENOTDIR: 'Not a directory',
  }
  return texts[code] ?? code
}

function coded(code: string, message: string): Error {
  return Object.assign(new Error(message), { code })
}

export { ClassicLevel as Level }

const all = { ClassicLevel, Level: ClassicLevel }
export default all
export { all as 'module.exports' }
