import { describe, expect, test } from 'vitest'
import { fileSystemAt, fileSystemIn } from '../../../src/std/file-system/file-system.ts'

const root = '22 1 254:0 / / rw,relatime shared:1 - ext4 /dev/vda rw'
const lineOf = (mountPoint: string, type: string, options = 'rw') =>
  `40 22 0:50 / ${mountPoint} rw,relatime shared:9 master:2 - ${type} source ${options}`
const at = (path: string, ...lines: string[]) =>
  fileSystemIn([root, ...lines, ''].join('\n'), path, () => true)

describe('the file system of a path', () => {
  test('is that of the longest mount point above it', () => {
    const lines = [lineOf('/var', 'xfs'), lineOf('/var/lib/gateway', 'btrfs')]
    expect(at('/var/lib/gateway/spool', ...lines)).toMatchObject({
      type: 'btrfs',
      mountPoint: '/var/lib/gateway',
    })
    expect(at('/var/lib/gateway2', ...lines)?.type).toBe('xfs')
    expect(at('/srv', ...lines)).toMatchObject({ type: 'ext4', source: '/dev/vda' })
  })

  test('is the last one of several at the same place, and of a place with a space', () => {
    expect(
      at('/data disk/spool', lineOf('/data\\040disk', 'xfs'), lineOf('/data\\040disk', 'nfs4'))?.type,
    ).toBe('nfs4')
  })

  test.each([
    ['ext4', false, 'none'],
    ['xfs', false, 'none'],
    ['tmpfs', true, 'none'],
    ['ramfs', true, 'none'],
    ['ext2', false, 'no journal'],
    ['vfat', false, 'no journal'],
    ['exfat', false, 'no journal'],
    ['nfs', false, 'on a server'],
    ['nfs4', false, 'on a server'],
    ['cifs', false, 'on a server'],
  ])('%s: in memory %s, risk %s', (type, isInMemory, risk) => {
    const found = at('/spool', lineOf('/spool', type))
    expect(found?.isInMemory).toBe(isInMemory)
    expect(found?.risk ?? 'none').toContain(risk)
  })

  test('of an overlay is judged by its upper directory', () => {
    const overlay = lineOf('/merged', 'overlay', 'rw,lowerdir=/a,upperdir=/run/upper,workdir=/run/work')
    expect(at('/merged/spool', overlay)).toMatchObject({
      type: 'overlay on ext4',
      isInMemory: false,
      risk: null,
    })
    expect(at('/merged/spool', overlay, lineOf('/run', 'tmpfs'))).toMatchObject({ isInMemory: true })
  })

  test('in the layer of a container is a risk, because the layer is deleted with the container', () => {
    const layer =
      '30 1 0:40 / / rw - overlay overlay rw,lowerdir=/l,upperdir=/var/lib/docker/1/diff,workdir=/w'
    expect(fileSystemIn(layer, '/spool', () => true)?.risk).toContain('deleted with the container')
    // A file system in memory hides the place where the host has the layer.
    const hidden = [layer, lineOf('/var', 'tmpfs')].join('\n')
    const found = fileSystemIn(hidden, '/spool', () => false)
    expect([found?.isInMemory, found?.risk]).toEqual([false, expect.stringContaining('deleted with')])
  })

  test('of this machine is known, also for a path that does not exist yet', async () => {
    expect(await fileSystemAt('/no/such/directory')).toMatchObject({ mountPoint: '/' })
  })
})
