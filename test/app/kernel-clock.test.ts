import { chmod, utimes, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { systemKernelClock } from '../../src/app/kernel-clock.ts'
import { systemClock } from '../../src/std/clock.ts'
import { newFolder } from '../support/folders.ts'

/** A system where these programs are installed, each a shell script. */
async function system(programs: Record<string, string>, marker?: { touchedAt: number }) {
  const folder = await newFolder()
  for (const [name, script] of Object.entries(programs)) {
    const file = join(folder, name)
    await writeFile(file, `#!/bin/sh\n${script}\n`)
    await chmod(file, 0o755)
  }
  const markerPath = join(folder, 'synchronized')
  if (marker !== undefined) {
    await writeFile(markerPath, '')
    await utimes(markerPath, marker.touchedAt / 1000, marker.touchedAt / 1000)
  }
  return systemKernelClock({ folders: [folder], markerPath, commandMs: 1000, bootId: null })
}

const adjtimexText = (value: number) => `echo '    return value: ${value} (clock)'`
const chronyText = (leap: string) => `echo 'A29FC87B,1.2.3.4,2,1763700000.1,0.000001,0.1,${leap}'`

describe('the clock of the system', () => {
  test.each<[string, Record<string, string>, boolean]>([
    ['systemd says yes', { timedatectl: 'echo yes' }, true],
    ['systemd says no', { timedatectl: 'echo no' }, false],
    ['systemd does not run, chrony does', { timedatectl: 'exit 1', chronyc: chronyText('Normal') }, true],
    ['chrony has no source', { chronyc: chronyText('Not synchronised') }, false],
    ['chronyd does not run', { chronyc: 'echo "506 Cannot talk to daemon"; exit 1' }, false],
    ['adjtimex of Debian says so', { adjtimex: "echo '   return value = 0'" }, true],
    ['adjtimex of busybox says so', { busybox: adjtimexText(0) }, true],
    ['adjtimex of busybox denies it', { busybox: adjtimexText(5) }, false],
    ['a program never answers', { timedatectl: 'exec sleep 60', chronyc: chronyText('Normal') }, true],
    ['nothing is installed', {}, false],
  ])('%s', async (_name, programs, isSynchronised) => {
    const kernel = await system(programs)
    expect(await kernel.isSynchronised(null)).toBe(isSynchronised)
  })

  test('is synchronised where timesyncd left its mark, unless the clock was set since', async () => {
    const kernel = await system({}, { touchedAt: 1_763_700_000_000 })
    expect(await kernel.isSynchronised(null)).toBe(true)
    expect(await kernel.isSynchronised(1_763_699_000_000)).toBe(true)
    expect(await kernel.isSynchronised(1_763_701_000_000)).toBe(false)
    const contradicted = await system({ timedatectl: 'echo no' }, { touchedAt: 1_763_700_000_000 })
    expect(await contradicted.isSynchronised(null)).toBe(false)
  })

  test('names the boot, the same for every process of it', async () => {
    const [one, other] = [await system({}), await system({})]
    expect(one.bootId === other.bootId).toBe(process.platform === 'linux')
    expect(one.bootId).toMatch(/^[0-9a-f-]{36}$/)
    expect(one.sleptMs()).toBeGreaterThanOrEqual(0)
    expect(systemClock.monotonic()).toBeGreaterThan(performance.now())
  })
})
