// third-party-notices.ts: the licence texts of all packages that a release has, with those of what is compiled into
// them: Node and its libraries, LevelDB, Snappy. A text that several packages have is printed once.

import { globSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { manifestsBelow, licenceOf, type PackageManifest } from './package-manifests.ts'

const licenceFiles = '{LICEN[CS]E,Licen[cs]e,licen[cs]e,COPYING,NOTICE}*'

/** The packages below `modules`, before anything is removed. `root`: the checkout. */
export function thirdPartyNotices(modules: string, root: string): string {
  const users = new Map<string, string[]>()
  const add = (text: string, name: string) => users.set(text, [...(users.get(text) ?? []), name])
  for (const { folder, manifest } of manifestsBelow(modules)) {
    // Types are not shipped.
    if (folder.startsWith('@types/')) continue
    const name = `${manifest.name} ${manifest.version} (${licenceOf(manifest)})`
    // Compiled sources are in deeper folders; nested packages have their own entry.
    const found = globSync(`{.,deps/**}/${licenceFiles}`, { cwd: join(modules, folder) })
      .filter((path) => !/\.(js|ts|json)$/.test(path))
      .toSorted()
    if (!found.some((path) => dirname(path) === '.' && !path.startsWith('NOTICE')))
      add(standardText(manifest, root), name)
    for (const path of found) {
      const text = readFileSync(join(modules, folder, path), 'utf8')
        .replaceAll('\r\n', '\n')
        .trim()
      add(text, dirname(path) === '.' ? name : `${name}: ${path}`)
    }
  }
  const blocks = [...users].map(([text, names]) => `${names.join('\n')}\n\n${indented(text)}\n`)
  return `The telemetry gateway comes with the packages below, each with its own licence.\n\n${blocks
    .toSorted()
    .map((block) => `${'-'.repeat(78)}\n${block}`)
    .join('\n')}`
}

const indented = (text: string) => text.replace(/^(?=.)/gm, '  ')

/** The text of the licence that package.json names, for a package without a text of its own. */
function standardText(manifest: PackageManifest, root: string): string {
  const { name, author } = manifest
  const licence = licenceOf(manifest)
  const holder = typeof author === 'string' ? author : (author?.name ?? `The authors of ${name}`)
  if (licence === 'MIT') return `MIT License\n\nCopyright (c) ${holder}\n\n${mitText}`
  if (licence === 'Apache-2.0')
    return `Copyright ${holder}\n\n${readFileSync(join(root, 'LICENSE'), 'utf8').trim()}`
  throw new Error(`${name} has no licence text, and there is no standard text of ${licence} here.`)
}

const mitText = `Permission is hereby granted, free of charge, to any person obtaining a copy of this software and associated
documentation files (the "Software"), to deal in the Software without restriction, including without limitation
the rights to use, copy, modify, merge, publish, distribute, sublicense, and/or sell copies of the Software, and
to permit persons to whom the Software is furnished to do so, subject to the following conditions:

The above copyright notice and this permission notice shall be included in all copies or substantial portions of
the Software.

THE SOFTWARE IS PROVIDED "AS IS", WITHOUT WARRANTY OF ANY KIND, EXPRESS OR IMPLIED, INCLUDING BUT NOT LIMITED TO
THE WARRANTIES OF MERCHANTABILITY, FITNESS FOR A PARTICULAR PURPOSE AND NONINFRINGEMENT. IN NO EVENT SHALL THE
AUTHORS OR COPYRIGHT HOLDERS BE LIABLE FOR ANY CLAIM, DAMAGES OR OTHER LIABILITY, WHETHER IN AN ACTION OF
CONTRACT, TORT OR OTHERWISE, ARISING FROM, OUT OF OR IN CONNECTION WITH THE SOFTWARE OR THE USE OR OTHER DEALINGS
IN THE SOFTWARE.`
