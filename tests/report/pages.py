"""Reports of a few kinds of fits, in a folder."""

import json
import random
import subprocess

FITS = {
    "mixture": ["s/responses.csv", "s/features.csv", "--response", "y", "--hint", "rows", "--report-truth", "s/truth.json"],
    "robust": ["s/responses.csv", "s/features.csv", "--response", "y", "--hint", "rows", "--robust", "--starts", "3"],
    "many": ["many.csv", "--response", "income of the household", "--method", "ls"],
    "groups": ["odd.csv", "--response", "a </script>,b", "--z", "c & d", "--method", "robot", "--starts", "2", "--group", "g"],
}


def make(program, folder):
    """Writes NAME.html and NAME.json for every fit."""
    def run(*arguments):
        done = subprocess.run([program, *arguments], cwd=folder, capture_output=True, text=True, timeout=900)
        assert done.returncode in (0, 1), done.stderr

    run("simulate", "sensing", "--n", "120", "--dim-z", "3", "--shuffle", "0.5", "--snr", "50", "--mean", "1", "--out", "s")
    draw = random.Random(0)
    with open(f"{folder}/odd.csv", "w") as file:
        file.write('"a </script>",b,c & d,g\n')
        for _ in range(30):
            c = draw.expovariate(1)
            file.write(f"{2 * c + draw.gauss(0, 0.1)},{1 - c},{c},{draw.choice('uv')}\n")
    names = [f"answer_to_question_number_{k}_of_the_survey" if k % 7 == 0 else f"q{k}" for k in range(40)]
    with open(f"{folder}/many.csv", "w") as file:
        file.write(",".join(["income of the household", *names]) + "\n")
        for _ in range(90):
            answers = [draw.gauss(0, 10 ** (k % 4)) for k in range(40)]
            file.write(",".join(map(str, [123456 + sum(answers) / 10 + draw.gauss(0, 1), *answers])) + "\n")
    for name, arguments in FITS.items():
        run("fit", *arguments, "--report", f"{name}.html", "--out", f"{name}.json", "--quiet")


def read(folder, name):
    """The page, the numbers inside it, and the fit.json beside it."""
    with open(f"{folder}/{name}.html") as file:
        page = file.read()
    with open(f"{folder}/{name}.json") as file:
        fit = json.load(file)
    return page, json.loads(page.split('<script type="application/json" id="data">')[1].split("</script>")[0]), fit
