// The maintainer scripts of the Debian package, as they are written. test/system/package.test.ts runs them.

import { execFileSync } from 'node:child_process'
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { describe, expect, test } from 'vitest'

const folder = resolve(import.meta.dirname, '../../config/packaging/deb')
const names = readdirSync(folder)
const shellcheck = '/usr/bin/shellcheck'
if (!existsSync(shellcheck))
  process.stderr.write('The maintainer scripts are not linted: shellcheck is not installed\n')

describe.each(names)('%s', (name) => {
  const path = join(folder, name)
  const text = readFileSync(path, 'utf8')

  test('is a POSIX shell script that ends at the first error', () => {
    expect(text).toMatch(/^#!\/bin\/sh\n(#.*\n)+set -e\n/)
    execFileSync('sh', ['-n', path])
  })

  test('asks nothing', () => {
    expect(text).not.toMatch(/^\s*read\b|debconf|db_/m)
  })

  test('reaches systemd only where it runs', () => {
    const lines = text
      .split('\n')
      .filter((line) => /^\s*(if )?(systemctl|deb-systemd-invoke)|then systemctl/.test(line))
    expect(lines.length > 0 && !text.includes('/run/systemd/system') ? lines : []).toEqual([])
  })

  test.skipIf(!existsSync(shellcheck))('has no finding of shellcheck', () => {
    expect(execFileSync(shellcheck, ['-s', 'sh', path], { encoding: 'utf8' })).toBe('')
  })
})

test('the package has the four scripts that dpkg calls', () => {
  expect(names.toSorted()).toEqual(['postinst', 'postrm', 'preinst', 'prerm'])
})
