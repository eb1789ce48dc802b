// The place of an error in the syntax of a config. cases/syntax.cases.yaml has the hints at the likely cause.

import { readdir, readFile } from 'node:fs/promises'
import { expect, test } from 'vitest'
import { parseYamlSource } from '../../src/config/yaml-source.ts'

test('of broken YAML only the first error is reported, where the quote is opened', async () => {
  const folder = new URL('../../config/examples/', import.meta.url)
  const names = (await readdir(folder)).filter((name) => /^[^.]+\.yaml$/.test(name))
  let broken = 0
  for (const name of names) {
    const text = await readFile(new URL(name, folder), 'utf8')
    for (const { index } of text.matchAll(/["']/g)) {
      const { sound, problems } = parseYamlSource(text.slice(0, index) + text.slice(index + 1))
      if (sound) continue
      broken += 1
      expect(problems.map(({ message }) => message)).toHaveLength(1)
      const removed = text.slice(0, index).split('\n').length
      const place = /probably in line (\d+)/.exec(problems[0]?.message ?? '')?.[1] ?? problems[0]?.line
      expect([removed, removed + 1], `${name}:${removed} ${JSON.stringify(problems)}`).toContain(
        Number(place),
      )
    }
  }
  expect(broken).toBeGreaterThan(5)
})
