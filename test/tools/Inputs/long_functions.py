"""Writes long.cpp and long.py, each with a long function that says nothing, one that says why, and a short one that says it, too."""
lines = "  step();\n" * 60
with open("long.cpp", "w", encoding="utf-8") as file:
    file.write("void silent() {\n" + lines + "}\n\n/// Long: one case after the other.\nvoid spoken() {\n" + lines
               + "}\n\n/// Long: it is not.\nvoid brief() {\n}\n")
step = "    step()\n" * 60
with open("long.py", "w", encoding="utf-8") as file:
    file.write("def silent():\n" + step + "\n\ndef spoken():\n    \"\"\"Long: one case after the other.\"\"\"\n" + step
               + "\n\ndef brief():\n    \"\"\"Long: it is not.\"\"\"\n")
