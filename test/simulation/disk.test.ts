// The rules of the simulated disk: it answers as the real one does, and a power cut takes only what was not
// synced.

import { createHash } from 'node:crypto'
import * as realFs from 'node:fs'
import * as realPromises from 'node:fs/promises'
import { afterEach, describe, expect, test } from 'vitest'
import { newFolder } from '../support/folders.ts'
import { current } from './machine/current.ts'
import { createDisk, type DiskOptions, type SimDisk } from './machine/disk.ts'
import * as fs from './node/fs.ts'
import * as promises from './node/fs-promises.ts'

afterEach(() => {
  current.disk = null
})

/** A disk with virtual time that passes as soon as nothing else runs. */
function newWorld(options: DiskOptions = {}, seed = 1) {
  let now = 1_800_000_000_000
  let serial = 0
  let state = seed
  let isRunning = false
  let queue: { at: number; serial: number; run: () => void }[] = []
  const random = () => {
    // mulberry32
    state = (state + 0x6d2b79f5) | 0
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state)
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296
  }
  const turn = () => {
    queue.sort((one, other) => one.at - other.at || one.serial - other.serial)
    const next = queue.shift()
    isRunning = next !== undefined
    if (next === undefined) return
    now = Math.max(now, next.at)
    next.run()
    setImmediate(turn)
  }
  const schedule = (delayMs: number, run: () => void) => {
    queue.push({ at: now + delayMs, serial: (serial += 1), run })
    if (isRunning) return
    isRunning = true
    setImmediate(turn)
  }
  const disk = createDisk({ now: () => now, random, schedule }, options)
  current.disk = disk
  const kill = () => {
    queue = []
    disk.processEnds()
  }
  const powerCut = () => {
    queue = []
    disk.powerCut()
  }
  const passMs = (ms: number) => new Promise<void>((resolve) => schedule(ms, resolve))
  return { disk, kill, powerCut, passMs, now: () => now, pending: () => queue.length }
}

/** The results of many power cuts after the same history, each with other chances. */
async function outcomes(
  history: (world: ReturnType<typeof newWorld>) => Promise<void> | void,
  read: (disk: SimDisk) => unknown,
  { cuts = 200, ...options }: DiskOptions & { cuts?: number } = {},
): Promise<Set<string>> {
  const found = new Set<string>()
  for (let seed = 1; seed <= cuts; seed += 1) {
    const world = newWorld(options, seed)
    await history(world)
    world.powerCut()
    found.add(JSON.stringify(read(world.disk)))
  }
  return found
}

const textAt = (disk: SimDisk, path: string) =>
  disk.world.exists(path) ? disk.world.read(path).toString('latin1') : null

function writeSynced(path: string, text: string): void {
  const fd = fs.openSync(path, 'w')
  fs.writeSync(fd, text)
  fs.fsyncSync(fd)
  fs.closeSync(fd)
}

function syncFolder(path: string): void {
  const fd = fs.openSync(path, 'r')
  fs.fsyncSync(fd)
  fs.closeSync(fd)
}

describe('the simulated disk answers as the real one', () => {
  /** Each with the modules of the disk and a new folder, which has the file `f` and the folder `d/e`. */
  const acts: Record<string, (at: string, fsp: typeof realPromises, sync: typeof realFs) => unknown> = {
    'open what is missing': (at, fsp) => fsp.open(`${at}/x`),
    'open below a file': (at, fsp) => fsp.open(`${at}/f/x`),
    'open exclusively what is there': (at, fsp) => fsp.open(`${at}/f`, 'wx'),
    'open a directory to write': (at, fsp) => fsp.open(`${at}/d`, 'w'),
    'open a link without following': (at, fsp, { constants }) =>
      fsp.symlink('f', `${at}/l`).then(() => fsp.open(`${at}/l`, constants.O_RDONLY | constants.O_NOFOLLOW)),
    'read through a link': (at, fsp) =>
      fsp.symlink('../f', `${at}/d/l`).then(() => fsp.readFile(`${at}/d/l`, 'utf8')),
    'write through a link that leads nowhere': async (at, fsp) => {
      await fsp.symlink('new', `${at}/l`)
      await fsp.writeFile(`${at}/l`, 'made')
      return [await fsp.readFile(`${at}/new`, 'utf8'), (await fsp.lstat(`${at}/l`)).isSymbolicLink()]
    },
    'follow a link to itself': (at, fsp) =>
      fsp.symlink('l', `${at}/l`).then(() => fsp.readFile(`${at}/l`, 'utf8')),
    'find the real path': async (at, fsp) => {
      await fsp.symlink('d', `${at}/l`)
      return fsp.realpath(`${at}/l/e/..`)
    },
    'find the real path of what is missing': (at, fsp) => fsp.realpath(`${at}/x`),
    'read a link': (at, fsp) => fsp.symlink('f', `${at}/l`).then(() => fsp.readlink(`${at}/l`)),
    'read what is missing': (at, fsp) => fsp.readFile(`${at}/x`),
    'read a directory as a file': (at, fsp) => fsp.readFile(`${at}/d`),
    'read with a signal that aborted': (at, fsp) => fsp.readFile(`${at}/f`, { signal: AbortSignal.abort() }),
    'read synchronously what is missing': (at, _, sync) => sync.readFileSync(`${at}/x`),
    'read a file': (at, fsp) => fsp.readFile(`${at}/f`, 'utf8'),
    'read a file as bytes': (at, fsp) => fsp.readFile(`${at}/f`),
    'list a file': (at, fsp) => fsp.readdir(`${at}/f`),
    'list what is missing': (at, fsp) => fsp.readdir(`${at}/x`),
    'list everything below': (at, fsp) => fsp.readdir(at, { recursive: true }),
    'list with kinds': async (at, fsp) =>
      (await fsp.readdir(at, { withFileTypes: true })).map((entry) => [
        entry.name,
        entry.isFile(),
        entry.isDirectory(),
        entry.parentPath === at,
      ]),
    'list synchronously': (at, _, sync) => sync.readdirSync(at),
    'open a directory that is missing': (at, fsp) => fsp.opendir(`${at}/x`),
    'read an open directory': async (at, fsp) => {
      const names: string[] = []
      for await (const entry of await fsp.opendir(at)) names.push(entry.name)
      return names.toSorted()
    },
    'close a directory twice': async (at, fsp) => {
      const directory = await fsp.opendir(at)
      await directory.close()
      await directory.close()
    },
    'make a directory twice': (at, fsp) => fsp.mkdir(`${at}/d`),
    'make a directory below a file': (at, fsp) => fsp.mkdir(`${at}/f/x`),
    'make a directory without parent': (at, fsp) => fsp.mkdir(`${at}/x/y`),
    'make directories': (at, fsp) => fsp.mkdir(`${at}/d/x/y`, { recursive: true }),
    'make directories that are there': (at, fsp) => fsp.mkdir(`${at}/d/e`, { recursive: true }),
    'make directories where a file is': (at, fsp) => fsp.mkdir(`${at}/f`, { recursive: true }),
    'make directories synchronously': (at, _, sync) => sync.mkdirSync(`${at}/d/x/y`, { recursive: true }),
    'make a directory with a mode': async (at, fsp) => {
      await fsp.mkdir(`${at}/x`, 0o700)
      return (await fsp.stat(`${at}/x`)).mode
    },
    'remove what is missing': (at, fsp) => fsp.rm(`${at}/x`),
    'remove by force what is missing': (at, fsp) => fsp.rm(`${at}/x`, { force: true }),
    'remove a directory as a file': (at, fsp) => fsp.rm(`${at}/d`),
    'remove a directory with all': async (at, fsp) => {
      await fsp.rm(`${at}/d`, { recursive: true })
      return fsp.readdir(at)
    },
    'remove a directory that has entries': (at, fsp) => fsp.rmdir(`${at}/d`),
    'remove synchronously what is missing': (at, _, sync) => sync.rmSync(`${at}/x`),
    'remove synchronously a directory': (at, _, sync) => sync.rmSync(`${at}/d`),
    'unlink what is missing': (at, fsp) => fsp.unlink(`${at}/x`),
    'unlink a directory': (at, fsp) => fsp.unlink(`${at}/d`),
    'rename what is missing': (at, fsp) => fsp.rename(`${at}/x`, `${at}/y`),
    'rename a file over a directory': (at, fsp) => fsp.rename(`${at}/f`, `${at}/d`),
    'rename a directory over a file': (at, fsp) => fsp.rename(`${at}/d`, `${at}/f`),
    'rename a directory into itself': (at, fsp) => fsp.rename(`${at}/d`, `${at}/d/e/x`),
    'rename over a directory with entries': (at, fsp) =>
      fsp.mkdir(`${at}/x`).then(() => fsp.rename(`${at}/x`, `${at}/d`)),
    'rename over a file': async (at, fsp) => {
      await fsp.writeFile(`${at}/x`, 'new')
      await fsp.rename(`${at}/x`, `${at}/f`)
      return [await fsp.readFile(`${at}/f`, 'utf8'), await fsp.readdir(at)]
    },
    'link over what is there': (at, fsp) => fsp.link(`${at}/f`, `${at}/d`),
    'link what is missing': (at, fsp) => fsp.link(`${at}/x`, `${at}/y`),
    'link a directory': (at, fsp) => fsp.link(`${at}/d`, `${at}/y`),
    'link a file': async (at, fsp) => {
      await fsp.link(`${at}/f`, `${at}/g`)
      await fsp.appendFile(`${at}/g`, 'd')
      return [(await fsp.stat(`${at}/f`)).nlink, await fsp.readFile(`${at}/f`, 'utf8')]
    },
    'make a link that is there': (at, fsp) => fsp.symlink('x', `${at}/f`),
    'copy what is missing': (at, fsp) => fsp.copyFile(`${at}/x`, `${at}/y`),
    'copy over what is there': (at, fsp, { constants }) =>
      fsp.copyFile(`${at}/f`, `${at}/f`, constants.COPYFILE_EXCL),
    'copy a file': async (at, fsp) => {
      await fsp.copyFile(`${at}/f`, `${at}/g`)
      return fsp.readFile(`${at}/g`, 'utf8')
    },
    'stat what is missing': (at, fsp) => fsp.stat(`${at}/x`),
    'lstat what is missing': (at, fsp) => fsp.lstat(`${at}/x`),
    'stat silently what is missing': (at, _, sync) => sync.statSync(`${at}/x`, { throwIfNoEntry: false }),
    'stat a file': async (at, fsp) => {
      const { size, nlink, mode, uid, gid, blocks } = await fsp.stat(`${at}/f`)
      return { size, nlink, mode, uid, gid, blocks }
    },
    'statfs what is missing': (at, fsp) => fsp.statfs(`${at}/x`),
    'access what is missing': (at, fsp) => fsp.access(`${at}/x`),
    'access what nobody may run': (at, fsp, { constants }) => fsp.access(`${at}/f`, constants.X_OK),
    'change the mode of what is missing': (at, fsp) => fsp.chmod(`${at}/x`, 0o600),
    'change a mode': async (at, fsp) => {
      await fsp.chmod(`${at}/f`, 0o600)
      return (await fsp.stat(`${at}/f`)).mode
    },
    'change times': async (at, fsp) => {
      await fsp.utimes(`${at}/f`, 1, 2.5)
      return (await fsp.stat(`${at}/f`)).mtimeMs
    },
    'make a temporary directory without parent': (at, fsp) =>
      fsp.mkdtemp(`${at}/x/y-`).catch((error: Error) => error.message.replace(/......'$/, '')),
    'make a temporary directory': async (at, fsp) => {
      const path = await fsp.mkdtemp(`${at}/y-`)
      return [path.length - at.length, (await fsp.stat(path)).mode]
    },
    'a name that is too long': (at, fsp) => fsp.writeFile(`${at}/${'x'.repeat(256)}`, ''),
    'watch what is missing': (at, _, sync) => sync.watch(`${at}/x`, {}),
    'read and write at places': async (at, fsp) => {
      await using file = await fsp.open(`${at}/f`, 'r+')
      await file.write(Buffer.from('__XYZ__'), 2, 3, 5)
      await file.write('ab')
      const into = Buffer.alloc(4, '.')
      const { bytesRead } = await file.read(into, 1, 2, 6)
      const rest = await file.readFile('latin1')
      return [bytesRead, into.toString(), rest, (await file.stat()).size]
    },
    'read behind the end': async (at, fsp) => {
      await using file = await fsp.open(`${at}/f`)
      return (await file.read(Buffer.alloc(3), 0, 3, 99)).bytesRead
    },
    'write what is open to read': async (at, fsp) => {
      await using file = await fsp.open(`${at}/f`)
      await file.write('x')
    },
    'append whatever the position': async (at, fsp) => {
      await using file = await fsp.open(`${at}/f`, 'a+')
      await file.write(Buffer.from('zz'), 0, 2, 0)
      await file.appendFile('yy')
      return fsp.readFile(`${at}/f`, 'utf8')
    },
    'cut and lengthen a file': async (at, fsp) => {
      await using file = await fsp.open(`${at}/f`, 'r+')
      await file.truncate(1)
      await file.truncate(4)
      return fsp.readFile(`${at}/f`)
    },
    'write one block several times, and into one of them': async (at, fsp) => {
      const block = Buffer.alloc(1024 * 1024, 'block')
      await using file = await fsp.open(`${at}/f`, 'r+')
      for (let index = 0; index < 4; index += 1)
        await file.write(block, 0, block.length, index * block.length)
      await file.write('changed', 2 * block.length - 3)
      return createHash('sha1')
        .update(await fsp.readFile(`${at}/f`))
        .digest('hex')
    },
    'read a hole of a file': async (at, fsp) => {
      await using file = await fsp.open(`${at}/f`, 'r+')
      await file.write('end', 3_000_000)
      const into = Buffer.alloc(8, '.')
      await file.read(into, 0, 8, 2_999_996)
      const first = Buffer.alloc(8, '.')
      await file.read(first, 0, 8, 0)
      const middle = Buffer.alloc(8, '.')
      await file.read(middle, 0, 8, 1_500_000)
      return [into, first, middle]
    },
    'use a closed file': async (at, fsp) => {
      const file = await fsp.open(`${at}/f`)
      await Promise.all([file.close(), file.close()])
      await file.stat()
    },
    'read an open directory as a file': async (at, fsp) => {
      await using file = await fsp.open(at)
      await file.read(Buffer.alloc(1), 0, 1, 0)
    },
    'read a file that was removed meanwhile': async (at, fsp) => {
      await using file = await fsp.open(`${at}/f`)
      await fsp.rm(`${at}/f`)
      return [await file.readFile('utf8'), (await file.stat()).nlink]
    },
    'read synchronously at places': (at, _, sync) => {
      const fd = sync.openSync(`${at}/f`, 'r+')
      sync.writeSync(fd, Buffer.from('__XYZ__'), 2, 3, 1)
      const into = Buffer.alloc(4)
      const read = sync.readSync(fd, into, 0, 4, 0)
      sync.closeSync(fd)
      return [read, into.toString()]
    },
    'close a descriptor that is closed': (at, _, sync) => {
      const fd = sync.openSync(`${at}/f`, 'r')
      sync.closeSync(fd)
      sync.closeSync(fd)
    },
    exists: (at, _, sync) => [sync.existsSync(`${at}/f`), sync.existsSync(`${at}/x`)],
  }

  /** What an act gave, with the same name for both folders. */
  async function resultOf(act: () => unknown, folder: string): Promise<unknown> {
    const result = await Promise.resolve()
      .then(act)
      .then(
        (value) => ({ value }),
        (error: Error) => Object.assign({}, error, { name: error.name, message: error.message }),
      )
    return JSON.parse(JSON.stringify(result).replaceAll(folder, '/FOLDER'))
  }

  test.each(Object.keys(acts))('%s', async (name) => {
    const act = acts[name]
    if (act === undefined) throw new Error('no such act')
    const folder = await newFolder()
    newWorld().disk.world.write('/sim/a/f', 'abc')
    current.disk?.world.makeDirectory('/sim/a/d/e')
    await realPromises.writeFile(`${folder}/f`, 'abc')
    await realPromises.mkdir(`${folder}/d/e`, { recursive: true })
    const real = await resultOf(() => act(folder, realPromises, realFs), folder)
    const simulated = await resultOf(() => act('/sim/a', promises, fs as unknown as typeof realFs), '/sim/a')
    expect(simulated).toEqual(real)
  })
})

describe('the end of the process', () => {
  test('takes no written byte, and all descriptors, watches and locks', async () => {
    const { disk, kill, passMs } = newWorld()
    disk.world.makeDirectory('/sim/a')
    const events: string[] = []
    fs.watch('/sim/a', (event, name) => events.push(`${event} ${name}`))
    const fd = fs.openSync('/sim/a/f', 'w')
    fs.writeSync(fd, 'unsynced')
    expect(disk.lock('/sim/a/f')).not.toBeNull()
    expect(disk.lock('/sim/a/f', 'other')).toBeNull()
    kill()
    expect(textAt(disk, '/sim/a/f')).toBe('unsynced')
    expect(() => fs.writeSync(fd, 'x')).toThrow('EBADF')
    expect(disk.openDescriptors).toBe(0)
    expect(disk.lock('/sim/a/f', 'other')).not.toBeNull()
    disk.world.write('/sim/a/g', '')
    await passMs(10)
    expect(events).toEqual([])
  })

  test('leaves no effect of a call that has not reached the disk', async () => {
    const { disk, kill } = newWorld()
    disk.world.write('/sim/f', 'before')
    void promises.rm('/sim/f')
    void promises.writeFile('/sim/g', 'new')
    kill()
    expect(textAt(disk, '/sim/f')).toBe('before')
    expect(disk.world.exists('/sim/g')).toBe(false)
  })

  test('can leave a file that writeFile() has emptied and not yet written', async () => {
    const { disk, kill } = newWorld()
    disk.world.write('/sim/f', 'before')
    disk.stall({ call: 'write' })
    void promises.writeFile('/sim/f', 'after')
    await promises.stat('/sim')
    await promises.stat('/sim')
    kill()
    expect(textAt(disk, '/sim/f')).toBe('')
  })

  test('can leave a copy that is empty', async () => {
    const { disk, kill } = newWorld()
    disk.world.write('/sim/f', 'text')
    disk.stall({ call: 'copyfile', after: 1 })
    void promises.copyFile('/sim/f', '/sim/g')
    await promises.stat('/sim')
    await promises.stat('/sim')
    kill()
    expect(textAt(disk, '/sim/g')).toBe('')
  })

  test('gives the room of a removed file back that was still open', () => {
    const { disk, kill } = newWorld()
    const fd = fs.openSync('/sim/f', 'w')
    fs.writeSync(fd, Buffer.alloc(10_000))
    fs.unlinkSync('/sim/f')
    expect(disk.usedBytes).toBe(12_288)
    kill()
    expect(disk.usedBytes).toBe(0)
  })
})

describe('a power cut', () => {
  test('takes nothing that was synced, with its directory', async () => {
    const found = await outcomes(
      () => {
        fs.mkdirSync('/sim/a')
        syncFolder('/sim')
        writeSynced('/sim/a/f', 'kept')
        syncFolder('/sim/a')
      },
      (disk) => textAt(disk, '/sim/a/f'),
    )
    expect([...found]).toEqual(['"kept"'])
  })

  test('can take a synced file whose directory was not synced', async () => {
    const history = () => writeSynced('/sim/f', 'kept')
    const read = (disk: SimDisk) => textAt(disk, '/sim/f')
    expect([...(await outcomes(history, read))].toSorted()).toEqual(['"kept"', 'null'])
    const asExt4 = await outcomes(history, read, { fsyncFileSyncsEntry: true })
    expect([...asExt4]).toEqual(['"kept"'])
  })

  test('can empty a new file whose entry alone was synced', async () => {
    const found = await outcomes(
      () => {
        fs.writeFileSync('/sim/f', 'text')
        syncFolder('/sim')
      },
      (disk) => textAt(disk, '/sim/f'),
    )
    // With a size and no bytes the file reads as zeros.
    expect(found).toEqual(new Set(['"text"', '""', JSON.stringify('\0\0\0\0')]))
  })

  test('keeps, loses and reorders writes, and fills holes with zeros', async () => {
    const found = await outcomes(
      () => {
        writeSynced('/sim/f', '....')
        syncFolder('/sim')
        const fd = fs.openSync('/sim/f', 'r+')
        for (const [index, letter] of ['a', 'b', 'c'].entries()) fs.writeSync(fd, letter, 4 + index)
        fs.writeSync(fd, 'X', 0)
      },
      (disk) => textAt(disk, '/sim/f'),
      { cuts: 1000 },
    )
    for (const text of ['....', 'X...', '....a', '....ab', '....abc', 'X...abc', '....\0\0c', 'X...\0b'])
      expect(found).toContain(JSON.stringify(text))
    for (const text of found) expect(JSON.parse(text)).toMatch(/^[X.]\.{3}(?:[a\0](?:[b\0][c\0]?)?)?$/)
  })

  test('lets the later of two writes at one place win where it keeps both', async () => {
    const found = await outcomes(
      () => {
        writeSynced('/sim/f', '0')
        syncFolder('/sim')
        const fd = fs.openSync('/sim/f', 'r+')
        fs.writeSync(fd, '1', 0)
        fs.writeSync(fd, '2', 0)
      },
      (disk) => textAt(disk, '/sim/f'),
    )
    expect([...found].toSorted()).toEqual(['"0"', '"1"', '"2"'])
  })

  test('tears a write at the borders of sectors of the disk only', async () => {
    const found = await outcomes(
      () => {
        writeSynced('/sim/f', '.'.repeat(2048))
        syncFolder('/sim')
        const fd = fs.openSync('/sim/f', 'r+')
        fs.writeSync(fd, 'x'.repeat(1500), 100)
      },
      (disk) => textAt(disk, '/sim/f'),
      { cuts: 1000 },
    )
    const sectors = [...found].map((text) => (JSON.parse(text) as string).match(/.{512}/gs) ?? [])
    const whole = [
      '.'.repeat(100) + 'x'.repeat(412),
      'x'.repeat(512),
      'x'.repeat(512),
      'x'.repeat(64) + '.'.repeat(448),
    ]
    for (const four of sectors)
      for (const [index, sector] of four.entries()) expect(['.'.repeat(512), whole[index]]).toContain(sector)
    const kept = new Set(sectors.map((four) => four.map((sector) => Number(sector.includes('x'))).join('')))
    // Prefixes, and others: the sectors of a write can reach the disk in any order.
    for (const pattern of ['0000', '1000', '1100', '1110', '1111']) expect(kept).toContain(pattern)
    expect([...kept].some((pattern) => pattern.includes('01'))).toBe(true)
  })

  test('leaves the old file or the new one where a synced file was renamed over it', async () => {
    const found = await outcomes(
      () => {
        writeSynced('/sim/f', 'old')
        syncFolder('/sim')
        writeSynced('/sim/f.new', 'new')
        fs.renameSync('/sim/f.new', '/sim/f')
      },
      (disk) => [textAt(disk, '/sim/f'), textAt(disk, '/sim/f.new')],
    )
    expect([...found].toSorted()).toEqual(['["new",null]', '["old","new"]', '["old",null]'])
  })

  test('leaves a file that was renamed several times under exactly one name', async () => {
    const found = await outcomes(
      () => {
        fs.mkdirSync('/sim/d')
        writeSynced('/sim/1', 'text')
        syncFolder('/sim')
        fs.renameSync('/sim/1', '/sim/2')
        fs.renameSync('/sim/2', '/sim/d/3')
        fs.renameSync('/sim/d/3', '/sim/1')
        fs.renameSync('/sim/1', '/sim/4')
      },
      (disk) => ['1', '2', 'd/3', '4'].filter((name) => disk.world.exists(`/sim/${name}`)),
    )
    expect([...found].toSorted()).toEqual(['["1"]', '["2"]', '["4"]', '["d/3"]'])
  })

  test('can bring a removed file back, until its directory is synced', async () => {
    const history = (isSynced: boolean) => () => {
      writeSynced('/sim/f', 'text')
      syncFolder('/sim')
      fs.unlinkSync('/sim/f')
      if (isSynced) syncFolder('/sim')
    }
    const read = (disk: SimDisk) => [textAt(disk, '/sim/f'), disk.usedBytes]
    expect([...(await outcomes(history(false), read))].toSorted()).toEqual(['["text",4096]', '[null,0]'])
    expect([...(await outcomes(history(true), read))]).toEqual(['[null,0]'])
  })

  test('makes the sync of one directory durable with the earlier renames that it builds on', async () => {
    const found = await outcomes(
      () => {
        fs.mkdirSync('/sim/a')
        fs.mkdirSync('/sim/b')
        writeSynced('/sim/a/1', 'text')
        syncFolder('/sim/a')
        syncFolder('/sim')
        fs.renameSync('/sim/a/1', '/sim/a/2')
        fs.renameSync('/sim/a/2', '/sim/b/3')
        syncFolder('/sim/b')
      },
      (disk) => [disk.world.list('/sim/a').length, textAt(disk, '/sim/b/3')],
    )
    expect([...found]).toEqual(['[0,"text"]'])
  })

  test('loses all later writes with a lost change of the size', async () => {
    const found = await outcomes(
      () => {
        writeSynced('/sim/f', 'oldold')
        syncFolder('/sim')
        fs.writeFileSync('/sim/f', 'new')
      },
      (disk) => textAt(disk, '/sim/f'),
      { cuts: 1000 },
    )
    const zeros = JSON.stringify('\0\0\0')
    expect([...found].toSorted()).toEqual(['""', '"new"', '"oldold"', zeros].toSorted())
  })

  test('takes nothing that the kernel has written meanwhile', async () => {
    const found = await outcomes(
      async ({ passMs }) => {
        fs.writeFileSync('/sim/f', 'text')
        await passMs(31_000)
      },
      (disk) => textAt(disk, '/sim/f'),
      { cuts: 30 },
    )
    expect([...found]).toEqual(['"text"'])
  })

  test('can take what a failed sync did not write, also after a later sync that succeeds', async () => {
    const found = await outcomes(
      ({ disk }) => {
        writeSynced('/sim/f', 'a')
        syncFolder('/sim')
        const fd = fs.openSync('/sim/f', 'a')
        fs.writeSync(fd, 'b')
        disk.fail({ call: 'fsync', code: 'EIO', times: 1 })
        expect(() => fs.fsyncSync(fd)).toThrow('EIO: i/o error, fsync')
        fs.writeSync(fd, 'c')
        fs.fsyncSync(fd)
      },
      (disk) => textAt(disk, '/sim/f'),
    )
    expect([...found].toSorted()).toEqual(['"abc"', JSON.stringify('a\0c')].toSorted())
  })

  test('is the same for the same seed', async () => {
    const read = async (seed: number) => {
      const { disk, powerCut } = newWorld({}, seed)
      for (let index = 0; index < 50; index += 1) fs.writeFileSync(`/sim/${index}`, 'x'.repeat(2000))
      powerCut()
      return disk.world.list('/sim').map(({ name }) => [name, textAt(disk, `/sim/${name}`)])
    }
    for (const seed of [2, 3, 5]) expect(await read(seed)).toEqual(await read(seed))
    expect(await read(2)).not.toEqual(await read(3))
  })
})

describe('faults of the simulated disk', () => {
  test('strike the calls that match, from the named one on and as often as asked', async () => {
    const { disk } = newWorld()
    disk.fail({ call: 'rename', path: '/sim/new', code: 'EACCES' })
    expect(() => fs.renameSync('/sim/x', '/sim/new')).toThrow('EACCES')
    const end = disk.fail({ call: 'write', path: '/sim/a', code: 'EIO', after: 1, times: 1 })
    disk.world.makeDirectory('/sim/a')
    const write = (path: string) => promises.writeFile(path, 'x').then(() => 'ok', String)
    expect(await write('/sim/ab')).toBe('ok')
    expect(await write('/sim/a/1')).toBe('ok')
    expect(await write('/sim/a/2')).toBe('Error: EIO: i/o error, write')
    expect(await write('/sim/a/3')).toBe('ok')
    end()
    const endAll = disk.fail({ call: /sync$/, path: /4$/, code: 'EIO' })
    const file = await promises.open('/sim/a/4', 'w')
    await expect(file.datasync()).rejects.toThrow('EIO: i/o error, fdatasync')
    await expect(file.sync()).rejects.toThrow('EIO: i/o error, fsync')
    endAll()
    await file.sync()
    expect(disk.counters.struck).toEqual({
      'write EIO': 1,
      'fdatasync EIO': 1,
      'fsync EIO': 1,
      'rename EACCES': 1,
    })
    expect(disk.counters.calls['write']).toBe(4)
  })

  test('a full disk takes what fits and refuses the rest, and tells its free bytes', async () => {
    const { disk } = newWorld({ capacity: { bytes: 3 * 4096, files: 100 } })
    const file = await promises.open('/sim/f', 'w')
    expect((await file.write(Buffer.alloc(20_000))).bytesWritten).toBe(3 * 4096)
    await expect(file.write('x')).rejects.toThrow('ENOSPC: no space left on device, write')
    await expect(promises.writeFile('/sim/g', 'x')).rejects.toThrow('ENOSPC')
    expect((await promises.statfs('/sim')).bavail).toBe(0)
    await promises.rm('/sim/f')
    // It is open.
    expect((await promises.statfs('/sim')).bavail).toBe(0)
    await file.close()
    expect((await promises.statfs('/sim')).bavail).toBe(3)
    disk.setCapacity({ bytes: 0 })
    // What another program writes is not refused.
    disk.world.write('/sim/other', 'x')
  })

  test('a disk without inodes refuses new files, and tells it', async () => {
    newWorld({ capacity: { bytes: 1e6, files: 3 } })
    await promises.writeFile('/sim/1', 'x')
    await promises.writeFile('/sim/2', 'x')
    await expect(promises.writeFile('/sim/3', '')).rejects.toThrow('ENOSPC: no space left on device, open')
    await expect(promises.mkdir('/sim/3')).rejects.toThrow('ENOSPC')
    const { files, ffree } = await promises.statfs('/sim')
    expect([files, ffree]).toEqual([3, 0])
    await promises.rm('/sim/1')
    await promises.writeFile('/sim/3', '')
  })

  test('a read-only disk refuses every change and can be read', async () => {
    const { disk } = newWorld()
    disk.world.write('/sim/f', 'text')
    const fd = fs.openSync('/sim/f', 'r+')
    const end = disk.setReadOnly(true)
    for (const change of [
      () => fs.writeFileSync('/sim/g', ''),
      () => fs.openSync('/sim/f', 'r+'),
      () => fs.writeSync(fd, 'x'),
      () => fs.unlinkSync('/sim/f'),
      () => fs.renameSync('/sim/f', '/sim/g'),
      () => fs.mkdirSync('/sim/d'),
      () => fs.accessSync('/sim/f', fs.constants.W_OK),
    ])
      expect(change).toThrow('EROFS: read-only file system')
    expect(fs.readFileSync('/sim/f', 'utf8')).toBe('text')
    end()
    fs.unlinkSync('/sim/f')
  })

  test('a stall delays calls in virtual time, or holds them until it ends', async () => {
    const { disk, now, passMs } = newWorld()
    const start = now()
    const endDelay = disk.stall({ call: 'stat', ms: 5000 })
    await promises.stat('/sim')
    expect(now() - start).toBeGreaterThanOrEqual(5000)
    endDelay()
    const release = disk.stall({ call: /^(open|fsync)$/ })
    let isDone = false
    const write = promises.writeFile('/sim/f', 'x').then(() => {
      isDone = true
    })
    await passMs(60_000)
    expect(isDone).toBe(false)
    release()
    await write
    expect(fs.readFileSync('/sim/f', 'utf8')).toBe('x')
  })

  test('a stalled call of a process that ended has no effect when the stall ends', async () => {
    const { disk, kill, passMs } = newWorld()
    const release = disk.stall({ call: 'open' })
    void promises.writeFile('/sim/f', 'x')
    await passMs(10)
    kill()
    release()
    await passMs(10)
    expect(disk.world.exists('/sim/f')).toBe(false)
  })

  test('a flipped bit stays until it is flipped back', () => {
    const { disk, powerCut } = newWorld()
    disk.world.write('/sim/f', 'abc')
    const end = disk.flipBit('/sim/f', 1)
    const changed = textAt(disk, '/sim/f') ?? ''
    expect(changed).toMatch(/^a[^b]c$/s)
    powerCut()
    expect(textAt(disk, '/sim/f')).toBe(changed)
    end()
    expect(textAt(disk, '/sim/f')).toBe('abc')
  })
})

describe('what the other parts of the simulated machine use', () => {
  test('a hidden directory shows another one, and comes back with all that it had', async () => {
    const { disk } = newWorld()
    disk.world.write('/sim/spool/f', 'text')
    disk.attach('/sim/spool', 'database')
    const before = fs.statSync('/sim/spool')
    const fd = fs.openSync('/sim/spool/f', 'a')
    const unhide = disk.world.hide('/sim/spool')
    const hidden = fs.statSync('/sim/spool')
    expect([hidden.dev === before.dev, hidden.ino === before.ino]).toEqual([false, false])
    expect(fs.readdirSync('/sim/spool')).toEqual([])
    expect(disk.attachment('/sim/spool')).toBeNull()
    fs.writeFileSync('/sim/spool/below', '')
    // A file that is open stays the one of the directory that is hidden.
    fs.writeSync(fd, '!')
    expect(() => fs.renameSync('/sim/spool/below', '/sim/f')).toThrow('EXDEV')
    expect(() => fs.renameSync('/sim/spool', '/sim/other')).toThrow('EBUSY')
    unhide()
    expect(fs.statSync('/sim/spool').ino).toBe(before.ino)
    expect(fs.readdirSync('/sim/spool')).toEqual(['f'])
    expect(textAt(disk, '/sim/spool/f')).toBe('text!')
    expect(disk.attachment('/sim/spool')).toBe('database')
    disk.world.hide('/sim/spool')
    expect(fs.readdirSync('/sim/spool')).toEqual(['below'])
  })

  test('an attached object moves with its directory, and its size counts', () => {
    const { disk } = newWorld({ capacity: { bytes: 10 * 4096, files: 100 } })
    disk.world.makeDirectory('/sim/store')
    disk.attach('/sim/store', 'database')
    expect(disk.reserve('/sim/store', 9 * 4096)).toBe(true)
    expect(disk.reserve('/sim/store', 11 * 4096)).toBe(false)
    expect(fs.statfsSync('/sim').bavail).toBe(1)
    fs.renameSync('/sim/store', '/sim/aside')
    expect(disk.attachment('/sim/aside')).toBe('database')
    const directory = disk.directoryAt('/sim/aside')
    expect(disk.reserve(directory, 8 * 4096)).toBe(true)
    expect(fs.statfsSync('/sim').bavail).toBe(2)
    fs.rmSync('/sim/aside', { recursive: true })
    expect(directory.links).toBe(0)
    disk.reserve(directory, 5 * 4096)
    expect(fs.statfsSync('/sim').bavail).toBe(10)
  })

  test('a socket has a name until it is removed', () => {
    const { disk } = newWorld()
    disk.makeSocket('/sim/control.sock')
    expect(fs.lstatSync('/sim/control.sock').isSocket()).toBe(true)
    expect(() => disk.makeSocket('/sim/control.sock')).toThrow('EADDRINUSE')
    expect(() => fs.openSync('/sim/control.sock', 'r')).toThrow('ENXIO')
    fs.chmodSync('/sim/control.sock', 0o600)
    fs.unlinkSync('/sim/control.sock')
    disk.makeSocket('/sim/control.sock')
  })

  test('a virtual file wins over the real one', async () => {
    const { disk } = newWorld()
    disk.virtualFile('/proc/self/mountinfo', () => 'simulated')
    expect(fs.readFileSync('/proc/self/mountinfo', 'utf8')).toBe('simulated')
    expect(await promises.readFile('/proc/self/mountinfo', 'utf8')).toBe('simulated')
    expect(fs.readFileSync('/proc/self/limits', 'utf8')).toContain('Max open files')
  })

  test('a watch reports what is made, written, renamed and removed, until it is closed', async () => {
    const { disk, passMs } = newWorld()
    disk.world.makeDirectory('/sim/d')
    const events: string[] = []
    const watch = fs.watch('/sim/d', { persistent: false }, (event, name) => events.push(`${event} ${name}`))
    disk.world.write('/sim/d/f', 'x')
    expect(events).toEqual([])
    await passMs(1)
    expect(events).toEqual(['rename f', 'change f'])
    fs.renameSync('/sim/d/f', '/sim/d/g')
    fs.unlinkSync('/sim/d/g')
    await passMs(1)
    expect(events.slice(2)).toEqual(['rename f', 'rename g', 'rename g'])
    watch.close()
    disk.world.write('/sim/d/f', 'x')
    await passMs(1)
    expect(events).toHaveLength(5)
    const ending = new AbortController()
    fs.watch('/sim/d', { signal: ending.signal }, (event, name) => events.push(`${event} ${name}`))
    ending.abort()
    disk.world.write('/sim/d/h', 'x')
    await passMs(1)
    expect(events).toHaveLength(5)
  })

  test('calls complete in the order of virtual time, never at once', async () => {
    const order: string[] = []
    newWorld({ latencyMs: [1, 1] })
    const first = promises.stat('/sim').then(() => order.push('first'))
    order.push('called')
    await Promise.all([first, promises.readdir('/sim').then(() => order.push('second'))])
    expect(order).toEqual(['called', 'first', 'second'])
  })

  test('all other paths are those of the real disk', async () => {
    newWorld()
    const folder = await newFolder()
    await promises.writeFile(`${folder}/f`, 'real')
    expect(await realPromises.readFile(`${folder}/f`, 'utf8')).toBe('real')
    expect(fs.readFileSync(`${folder}/f`, 'utf8')).toBe('real')
    await using file = await promises.open('/sim/f', 'w+')
    await promises.writeFile(file, 'text')
    expect(fs.readFileSync('/sim/f', 'utf8')).toBe('text')
    await expect(promises.rename(`${folder}/f`, '/sim/f')).rejects.toThrow('EXDEV')
  })

  test('a function that is not simulated refuses paths of the simulated disk', async () => {
    newWorld()
    expect(() => fs.createReadStream('/sim/f')).toThrow('createReadStream() is not simulated')
    await expect(promises.cp('/sim/f', '/sim/g')).rejects.toThrow('cp() is not simulated')
  })

  test('the modules export the names of those of Node', () => {
    expect(Object.keys(fs)).toEqual(expect.arrayContaining(Object.keys(realFs)))
    expect(Object.keys(promises)).toEqual(expect.arrayContaining(Object.keys(realPromises)))
    expect(fs.promises.open).toBe(promises.open)
  })
})
